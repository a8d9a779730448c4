/* Generated from guard-core/data: the oldest drivers, and GPUs outside of the general rule. */
#ifndef CUDAGUARD_TABLES_H
#define CUDAGUARD_TABLES_H

/* The oldest driver for: Zstandard that CUDA 12 or 13 wrote; PTX by its ISA, major << 8 | minor; a
 * cudart by its version: the CUDA that it supports, and its release for Linux and for Windows. A
 * number that is not listed has the driver of the next higher one. */
#define FLOORS(X) \
  X(12, 12040, 0x226360e, 0x2273d00) \
  X(13, 13000, 0x2440000, 0x2440000) \
  X(1025, 6050, 0x1540000, 0x1540000) \
  X(1026, 7000, 0x1860000, 0x1860000) \
  X(1027, 7050, 0x1860000, 0x1860000) \
  X(1280, 8000, 0x1860000, 0x1860000) \
  X(1536, 9000, 0x1860000, 0x1860000) \
  X(1537, 9010, 0x1860000, 0x1860000) \
  X(1538, 9020, 0x19a0000, 0x19a0000) \
  X(1539, 10000, 0x19a3000, 0x19b1f00) \
  X(1540, 10010, 0x1a22700, 0x1a26000) \
  X(1541, 10020, 0x1b82100, 0x1b91600) \
  X(1792, 11000, 0x1c23305, 0x1c33000) \
  X(1793, 11010, 0x1c71700, 0x1c82600) \
  X(1794, 11020, 0x1cc1b03, 0x1cc5200) \
  X(1795, 11030, 0x1d11301, 0x1d15900) \
  X(1796, 11040, 0x1d62a01, 0x1d70b00) \
  X(1797, 11050, 0x1ef1d05, 0x1f00400) \
  X(1798, 11060, 0x1fe2701, 0x1ff1700) \
  X(1799, 11070, 0x2032b04, 0x2040100) \
  X(1800, 11080, 0x2083d05, 0x2080600) \
  X(2048, 12000, 0x20d3c0d, 0x20f2900) \
  X(2049, 12010, 0x2121e02, 0x2130e00) \
  X(2050, 12020, 0x2173603, 0x2181900) \
  X(2051, 12030, 0x2211706, 0x2215400) \
  X(2052, 12040, 0x226360e, 0x2273d00) \
  X(2053, 12050, 0x22b2a02, 0x22b5500) \
  X(2054, 12070, 0x2350000, 0x2350000) \
  X(2055, 12080, 0x23a1a00, 0x23a4100) \
  X(2056, 12090, 0x23f3303, 0x2400200) \
  X(2304, 13000, 0x2444106, 0x2440000) \
  X(2305, 13010, 0x24e2c01, 0x24e0000) \
  X(2306, 13020, 0x2532d04, 0x2530000) \
  X(2307, 13030, 0x2622b02, 0x2620000) \
  X(2308, 13040, 0x2670000, 0x2670000) \
  X(2309, 13050, 0x26c0000, 0x26c0000) \
  X(4095, 13060, 0x0, 0x0) \
  X(10000, 10000, 0x19a3000, 0x19b1f00) \
  X(10010, 10010, 0x1a22700, 0x1a26000) \
  X(10020, 10020, 0x1b82100, 0x1b91600) \
  X(11000, 11000, 0x1c23305, 0x1c33000) \
  X(11990, 11000, 0x1c25002, 0x1c42700) \
  X(12990, 12000, 0x20d3c0d, 0x20f2900) \
  X(13990, 13000, 0x2444106, 0x2440000)

/* The newest CUDA of them: no driver is sure to compile PTX that needs a newer one. */
#define NEWEST_CUDA 13050
#define NO_DRIVER_KNOWN 99000

/* The last driver branch for GPUs below a compute capability. */
#define LAST_BRANCHES(X) \
  X(3 << 8 | 0, 390) \
  X(5 << 8 | 0, 470) \
  X(7 << 8 | 5, 580)

/* GPUs outside the general rule: the compute capability, that of the same chip under its other
 * name, whether it is a part of a Tegra, and the number of its family. */
#define CHIPS(X) \
  X(3 << 8 | 2, 0, 1, 0) \
  X(5 << 8 | 3, 0, 1, 0) \
  X(6 << 8 | 2, 0, 1, 0) \
  X(7 << 8 | 2, 0, 1, 0) \
  X(8 << 8 | 7, 0, 1, 0) \
  X(10 << 8 | 0, 0, 0, 20) \
  X(10 << 8 | 1, 11 << 8 | 0, 1, 21) \
  X(10 << 8 | 3, 0, 0, 20) \
  X(10 << 8 | 7, 0, 0, 20) \
  X(11 << 8 | 0, 10 << 8 | 1, 1, 24) \
  X(12 << 8 | 0, 0, 0, 25) \
  X(12 << 8 | 1, 0, 0, 25)

#endif
