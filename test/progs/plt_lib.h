/* SPDX-License-Identifier: MIT */
int lib_leaf(const int *p, int i);
int lib_hook(const int *p, int i);
int lib_other(const int *p, int i);
int lib_deep(const int *p, int n);
int lib_tail(int *p, int i);
int lib_ifunc(const int *p, int i);
int lib_work(int n);
