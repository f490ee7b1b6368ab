# The problems that are solved most often: one LASSO, elastic net or NNLS (l1 = l2 = 0) with a dense A, in
# microseconds.
#
#     minimise  1/2 |A x - b|^2 + l1 sum_j |x_j| + l2/2 sum_j x_j^2,    perhaps subject to x >= 0
#
# A is of float64 in Fortran order, or was copied to that (plain_given.pxi). What the loop does with objects,
# this does with one piece of memory and little code: in a program that does other work as well, neither is in
# the processor's caches when the call comes, and of 58 microseconds for 442 x 10 (2026-11-18, one core) the
# arithmetic was 8. The method is that of the loop, with the active-set method of gram_active_set.h on every
# working set. What it does not prove is left to the loop, and problems with larger working sets, on which the
# loop is faster.

cdef enum:
    MOST_PLAIN = 256   # Most columns of a working set,
    MOST_AT_ONCE = 512  # and most columns of a tall A of which all join at once.
    SMALL_PLAIN = 128  # Columns of A, or rows, up to which working sets stay small.
    FEW_ABOVE = 64     # With at most so many columns with |a_j' b| > 2 l1 working sets stay small, too.
    FEW_PLAIN = 16     # Columns up to which all join at once: a pass takes as long as their Gram matrix.
    PLAIN_ROUNDS = 100  # Rounds of the active-set method on a working set.
    PLAIN_NEW = 8      # PLAIN_NEW and PLAIN_PART are FIRST_NEW and PART of shared_matrix.py.
    # A Gram matrix of float32 takes half of the time, and perhaps one more pass over A. It is used again
    # MOST_REFINED times before the loop takes over, from LEAST_SINGLE columns on. These two and MOST_AT_ONCE
    # come from counting operations; no measurement chose them.
    MOST_REFINED = 3
    LEAST_SINGLE = 40


cdef double PLAIN_PART = 0.4
cdef double SINGLE_SMALL = 1e-12  # Largest entries of A whose squares, and the sums of these, suit float32.
cdef double SINGLE_LARGE = 1e12


cdef struct Plain:
    # What is given,
    double *A
    double *b
    const double *q  # (n,): A^T b
    Py_ssize_t m, n
    double l1, l2, tol, largest
    bint nonnegative
    # what is found,
    double *x  # (n,)
    double objective, gap
    Py_ssize_t iterations
    # and where.
    Family family
    State state
    double *gram        # (n, wide)
    double *block       # what gram.h copies
    double *own         # (wide,): q on the working set
    double *l1s         # (wide,), as the next four
    double *l2s
    double *either
    double *norms
    double *price
    double *c           # (n,): A^T u
    double *score       # (n,)
    double *u           # (m,): b - A x
    double *direction   # (m,): a direction into the dual cone of NNLS,
    double *slope       # (n,): A^T direction,
    double *length      # (n,): and |a_j|; only there are these three
    double **column     # (room,): where the columns of the working set begin
    Py_ssize_t *member  # (room,): their numbers
    Py_ssize_t *picked  # (n,)
    char *inside        # (n,)
    bint whole          # whether all columns will join at once
    Py_ssize_t refined  # how often a Gram matrix of float32 was used; -1 where it is of float64
    Py_ssize_t k        # how many,
    Py_ssize_t room     # and how many at most


cdef double *piece(char **free_room, size_t count) noexcept nogil:
    """A part of the memory for `count` numbers of 8 bytes."""
    cdef double *start = <double *> free_room[0]
    free_room[0] += count * 8
    return start


cdef void *lay_out(Plain *p) noexcept nogil:
    """All memory of a solve in one piece, which the caller frees; NULL where there is none."""
    cdef size_t n = p.n, most = p.n if p.whole else min(p.n, <Py_ssize_t> MOST_PLAIN)
    cdef size_t wide = (most + LANES - 1) // LANES * LANES, long_ = wide + LANES
    cdef size_t cone = 2 * n + p.m if p.l1 == 0.0 else 0
    cdef size_t copied = max(gram_room(p.m, most), gram_single_room(most))
    cdef size_t numbers = 15 * long_ + 5 * most + 8 + 3 * n + p.m + cone + 2 * most * wide + copied
    cdef char *room = <char *> realloc(NULL, 8 * numbers + n)
    cdef char *at = room
    cdef State *s = &p.state
    if room == NULL:
        return NULL
    memset(room, 0, 8 * 15 * long_)
    p.own, p.l1s, p.l2s, p.either = piece(&at, long_), piece(&at, long_), piece(&at, long_), piece(&at, long_)
    p.norms, p.price = piece(&at, long_), piece(&at, long_)
    s.c, s.score = piece(&at, long_), piece(&at, long_)
    s.price, s.x, s.sign, s.goal = piece(&at, long_), piece(&at, long_), piece(&at, long_), piece(&at, long_)
    s.second, s.work, s.inverse = piece(&at, long_), piece(&at, long_), piece(&at, long_)
    s.S, s.barred = <long *> piece(&at, most), <long *> piece(&at, most)
    s.found = <long *> piece(&at, most + 8)
    p.member, p.column = <Py_ssize_t *> piece(&at, most), <double **> piece(&at, most)
    p.c, p.score, p.picked = piece(&at, n), piece(&at, n), <Py_ssize_t *> piece(&at, n)
    p.u = piece(&at, p.m)
    if cone > 0:
        p.direction, p.slope, p.length = piece(&at, p.m), piece(&at, n), piece(&at, n)
    s.L, p.gram, p.block = piece(&at, most * wide), piece(&at, most * wide), piece(&at, copied)
    p.inside = at
    memset(p.inside, 0, n)
    p.room = most
    p.family.wide, p.family.ld, p.family.m = wide, wide, p.m
    p.family.H, p.family.l1, p.family.l2, p.family.either = p.gram, p.l1s, p.l2s, p.either
    p.family.norms, p.family.price, p.family.one_sign = p.norms, p.price, p.nonnegative
    p.family.factor = p.family.inverse = NULL
    p.family.radius, p.family.rounding = 0.0, (p.m + 4.0 * p.n) * DBL_EPSILON
    p.family.part, p.family.most_new = PLAIN_PART, PLAIN_NEW
    return room


cdef Py_ssize_t survey_plain(Plain *p, const double *c) noexcept nogil:
    """List the columns outside the working set that violate their optimality conditions, and their scores."""
    cdef Py_ssize_t j, count = 0
    cdef double excess
    for j in range(p.n):
        excess = (c[j] if p.nonnegative else fabs(c[j])) - p.l1
        if excess > 0.0 and not p.inside[j]:
            p.score[count] = excess
            p.picked[count] = j
            count += 1
    return count


cdef Py_ssize_t choose_plain(Plain *p, const double *c) noexcept nogil:
    """Choose the columns that join the working set, as `grow` of the loop does."""
    cdef Py_ssize_t count, want, j
    count = survey_plain(p, c)
    if p.k == 0 and count > 0 and (p.whole or p.n <= FEW_PLAIN):
        for j in range(p.n):
            p.picked[j] = j
        if p.n >= LEAST_SINGLE and SINGLE_SMALL < p.largest < SINGLE_LARGE:
            p.refined = 0
        return p.n
    want = <Py_ssize_t> ((TALL_GROWTH if p.m >= p.n else 1.0) * p.state.k)
    want = max(<Py_ssize_t> FIRST_COLUMNS, max(<Py_ssize_t> sqrt(p.n), want))
    want = min(want, p.room - p.k)
    if count > want:
        keep_largest(p.score, p.picked, count, want)
        count = want
    sort_numbers(p.picked, count)
    return count


cdef void join_plain(Plain *p, Py_ssize_t count) noexcept nogil:
    """Add the columns picked[:count] to the working set, and their rows and columns to the Gram matrix."""
    cdef Py_ssize_t i, j, k = p.k, total = p.k + count, wide = p.family.wide
    cdef double most = 0.0
    cdef double *H = p.gram
    for i in range(k, total):
        j = p.picked[i - k]
        p.inside[j] = 1
        p.member[i], p.column[i] = j, p.A + j * p.m
        memset(H + i * wide, 0, wide * sizeof(double))
    if p.refined == 0:
        gram_in_single(p.column, p.m, total, H, wide, p.block)
    else:
        gram_of_columns(p.column, NULL, p.m, k, total, H, wide, p.block)
    mirror(H, wide, k, total)
    for i in range(k, total):
        p.own[i] = p.state.c[i] = p.q[p.member[i]]
        p.l1s[i], p.l2s[i], p.either[i] = p.l1, p.l2, not p.nonnegative
        p.norms[i] = sqrt(H[i * wide + i])
        p.price[i] = p.state.price[i] = 1.0 / p.norms[i] if p.norms[i] > 0.0 else 0.0
    for i in range(total):
        most = max(most, p.norms[i])
    p.family.level = 0.01 * p.tol * p.l1 / most if most > 0.0 else 0.0
    p.family.n, p.k = total, total


cdef bint refine_plain(Plain *p) noexcept nogil:
    """Give the model, whose Gram matrix is of float32, the true gradient at x.

    False where the Gram matrix is of float64, and after MOST_REFINED times.
    """
    cdef Py_ssize_t i
    if p.refined < 0 or p.refined >= MOST_REFINED:
        return False
    p.refined += 1
    for i in range(p.k):
        p.own[i] += p.c[p.member[i]] - p.state.c[i]
    return True


cdef double certify_plain(Plain *p) noexcept nogil:
    """Compute the objective and the gap at x, from its residual u and c = A^T u; for NNLS, u is moved then.

    Returns a number that is NaN where an entry of c is.
    """
    cdef State *s = &p.state
    cdef Py_ssize_t i, j
    cdef double uu, ub, t, size, most = 0.0, lost = 0.0, sum = 0.0, squares = 0.0, weights[4]
    cdef double *columns[4]
    memcpy(p.u, p.b, p.m * sizeof(double))
    i = 0
    while i + 4 <= s.k:
        for j in range(4):
            weights[j], columns[j] = -s.x[i + j], p.column[s.S[i + j]]
        add_four(columns, weights, p.u, p.m)
        i += 4
    for j in range(i, s.k):
        axpy(-s.x[j], p.column[s.S[j]], p.u, p.m)
    for i in range(s.k):
        sum += fabs(s.x[i])
        squares += s.x[i] * s.x[i]
    uu, ub = dot(p.u, p.u, p.m), dot(p.u, p.b, p.m)
    p.objective = 0.5 * uu + p.l1 * sum + 0.5 * (p.l2 * squares)
    correlate_tall_double(p.A, p.m, p.u, p.c, p.m, p.n)
    for j in range(p.n):
        size = p.c[j] if p.nonnegative else fabs(p.c[j])
        most = max(most, size)
        if size > p.l1:
            lost += (size - p.l1) * (size - p.l1)
    if p.l1 == 0.0:
        move_inside_plain(p, uu)
        uu, ub = dot(p.u, p.u, p.m), dot(p.u, p.b, p.m)
        t, lost = ub / uu if uu > 0.0 else 1.0, 0.0
    elif p.l2 > 0.0:
        t, lost = 1.0, 0.5 * lost / p.l2
    else:
        t, lost = min(ub / uu if uu > 0.0 else 1.0, p.l1 / most if most > 0.0 else INFINITY), 0.0
    p.gap = p.objective
    if t > 0.0:
        p.gap = max(p.objective - max(t * (ub - 0.5 * t * uu) - lost, 0.0), 0.0)
    return most if isfinite(sum_of(p.c, p.n)) else NAN


cdef bint run_plain(Plain *p, Py_ssize_t max_iter) noexcept nogil:
    """Solve; True where the answer is proven."""
    cdef double square = dot(p.b, p.b, p.m), size = sqrt(square), sound
    cdef Py_ssize_t count
    p.refined = -1
    p.k = p.iterations = p.state.k = p.state.valid = p.state.barred_count = 0
    if p.l1 == 0.0 and not point_inside_plain(p):
        return False
    count = choose_plain(p, p.q)
    while p.iterations < max_iter:
        p.iterations += 1
        if count > 0:
            join_plain(p, count)
        elif p.iterations > 1 and not refine_plain(p):
            return False
        p.state.rounds = 0
        if p.k > 0 and not continue_active_set(&p.family, &p.state, p.own, size, PLAIN_ROUNDS):
            return False
        sound = certify_plain(p)
        if not (isfinite(sound) and isfinite(p.objective)):
            return False
        if p.gap <= max(p.tol * p.objective, 0.5 * DBL_EPSILON * square):
            return True
        count = choose_plain(p, p.c)
    return False


cdef bint prove_plain(Plain *p, Py_ssize_t max_iter) except -1:
    """Solve in memory of its own; True where the answer is proven."""
    cdef Py_ssize_t i
    cdef bint done
    cdef void *room = lay_out(p)
    if room == NULL:
        raise MemoryError(f"no memory for a working set of {p.room} columns")
    with nogil:
        done = run_plain(p, max_iter)
        memset(p.x, 0, p.n * sizeof(double))
        for i in range(p.state.k if done else 0):
            p.x[p.member[p.state.S[i]]] = p.state.x[i]
        free(room)
    return done


cdef bint pays_plain(Plain *p) noexcept nogil:
    """True where the working sets will have few columns, or all will join at once, as A^T b foretells.

    Measured on 2026-11-18 (200 x 1000 to 100 x 10,000, at 0.5, 0.1 and 0.01 of the largest lambda): 0.43 to
    1.0 of the loop's time where it is True, 0.9 to 2.3 of it elsewhere.
    """
    cdef Py_ssize_t j, above = 0, strong = 0
    cdef double size
    for j in range(p.n):
        size = p.q[j] if p.nonnegative else fabs(p.q[j])
        above += size > 2.0 * p.l1
        strong += size > STRONG * p.l1
    p.whole = p.n <= MOST_AT_ONCE and p.m >= TALL * p.n and strong >= MOST_COLUMNS * p.n
    return p.whole or p.n <= SMALL_PLAIN or above <= FEW_ABOVE or (p.m <= SMALL_PLAIN and 2 * strong <= p.n)
