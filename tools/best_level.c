/* Exits with 4, 3 or 2, the highest level of x86-64 that this machine runs. */
int main(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")
        || !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2"))
        return 2;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw")
        || !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq")
        || !__builtin_cpu_supports("avx512vl"))
        return 3;
    return 4;
}
