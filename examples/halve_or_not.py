"""4. Combine on a cube: exchange whole vectors, or halves?

Whole vectors take fewer messages, halves fewer bytes.  van de Geijn's strategy S says in which of
the d directions vectors are halved; Theorem 1 says which is best.
"""

import collwise as cw

alpha, beta, gamma = 525, 2, "0.35"  # µs: start-up, per item sent, per item combined
d = 6

print("items  halved in  whole (µs)  halved (µs)  best (µs)")
for n in (64, 256, 1024, 4096, 16384, 65536):
    strategy = cw.hybrid.best(n, d, alpha, beta, gamma)
    times = [
        cw.hybrid.version2(n, d, alpha, beta, gamma),
        cw.hybrid.version3(n, d, alpha, beta, gamma),
        cw.hybrid.time(strategy, n, alpha, beta, gamma),
    ]
    whole, halved, best = (f"{float(t):,.0f}" for t in times)
    print(f"{n:5}  {sum(strategy)} of {d}     {whole:>10}  {halved:>11}  {best:>9}")

machine = cw.Machine.hockney(alpha_s=alpha, beta_s="0.5", gamma_s="0.0875")  # per byte
plan = cw.plan("allreduce", ranks=64, nbytes=4 * 1024, machine=machine, dtype="float32")
print(
    f"\nof all algorithms for 1024 items the planner takes {plan.algorithm} {dict(plan.settings)}"
)
