"""The speed claims, each beside a reference program that runs in the same process.

``python -m benchmarks`` prints one table. A ratio is quoted from one run only: on a shared machine absolute
times drift by a factor of two, ratios hardly.
"""
