/* Vector loops for steps that combine the last sweeps (sparse_sweeps.pxi). */

#ifndef SWEEP_STEPS_H
#define SWEEP_STEPS_H

/* out = <e, e>, <e, d>, <d, d>, <e, here>, <d, here>. */
static inline void step_products(const double *restrict here, const double *restrict d, double *restrict e, double *restrict out,
                                 long m) {
    double ee = 0.0, ed = 0.0, dd = 0.0, eh = 0.0, dh = 0.0;
#pragma omp simd reduction(+ : ee, ed, dd, eh, dh)
    for (long i = 0; i < m; i++) {
        double t = e[i];
        ee += t * t;
        ed += t * d[i];
        dd += d[i] * d[i];
        eh += t * here[i];
        dh += d[i] * here[i];
    }
    out[0] = ee, out[1] = ed, out[2] = dd, out[3] = eh, out[4] = dh;
}

static inline void differences(const double *restrict here, const double *restrict last, double *restrict e, long m) {
    for (long i = 0; i < m; i++) e[i] = here[i] - last[i];
}

/* e = t e + q d. */
static inline void combine(double t, double q, const double *restrict d, double *restrict e, long m) {
    for (long i = 0; i < m; i++) e[i] = t * e[i] + q * d[i];
}

/* <here, e> + <e, e> / 2. */
static inline double quadratic_change(const double *restrict here, const double *restrict e, long m) {
    double s = 0.0;
#pragma omp simd reduction(+ : s)
    for (long i = 0; i < m; i++) s += e[i] * (here[i] + 0.5 * e[i]);
    return s;
}

/* here += part e; d = here - last; last = here. */
static inline void take_step(double part, const double *restrict e, double *restrict here, double *restrict last,
                             double *restrict d, long m) {
    for (long i = 0; i < m; i++) {
        double t = here[i] + part * e[i];
        d[i] = t - last[i];
        here[i] = last[i] = t;
    }
}

#endif
