"""Compiled kernels: functions of arrays that know nothing of the objects around them."""
