/* Generated from the tables of guard-core/data, and guard-core/src/knowledge/cudnn. */
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

/* From guard-core/src/knowledge/cudnn: the library that a manifest has rows for. */
#define CUDNN_FILE "libcudnn.so"
#define CUDNN_GETTER "cudnnGetVersion"

/* The weight of the major in the answer of that function. */
#define CUDNN_VERSION_FROM(answer) ((answer) >= 90000 ? 10000 : 1000)

/* From guard-core/data/pci.toml: PCI device ids of NVIDIA's GPUs, first and last, and
 * their compute capability. */
#define PCI_RANGES(X) \
  X(0x0fc0, 0x0fff, 3 << 8 | 0) \
  X(0x1000, 0x1024, 3 << 8 | 5) \
  X(0x1026, 0x102a, 3 << 8 | 5) \
  X(0x102d, 0x102d, 3 << 8 | 7) \
  X(0x102e, 0x102f, 3 << 8 | 5) \
  X(0x103a, 0x103a, 3 << 8 | 5) \
  X(0x103c, 0x103c, 3 << 8 | 5) \
  X(0x103f, 0x103f, 3 << 8 | 5) \
  X(0x1180, 0x11ff, 3 << 8 | 0) \
  X(0x1280, 0x12bf, 3 << 8 | 5) \
  X(0x1300, 0x131f, 3 << 8 | 5) \
  X(0x1340, 0x139f, 5 << 8 | 0) \
  X(0x13ad, 0x13ae, 5 << 8 | 2) \
  X(0x13b0, 0x13b4, 5 << 8 | 0) \
  X(0x13b6, 0x13b6, 5 << 8 | 0) \
  X(0x13b9, 0x13bd, 5 << 8 | 0) \
  X(0x13be, 0x143f, 5 << 8 | 2) \
  X(0x15c0, 0x15ff, 6 << 8 | 0) \
  X(0x1600, 0x161f, 5 << 8 | 2) \
  X(0x1660, 0x167f, 5 << 8 | 2) \
  X(0x1720, 0x173f, 6 << 8 | 0) \
  X(0x1740, 0x175f, 5 << 8 | 0) \
  X(0x1780, 0x179f, 5 << 8 | 0) \
  X(0x17c0, 0x17ff, 5 << 8 | 2) \
  X(0x1b00, 0x1b3f, 6 << 8 | 1) \
  X(0x1b60, 0x1c3f, 6 << 8 | 1) \
  X(0x1c60, 0x1d5f, 6 << 8 | 1) \
  X(0x1d80, 0x1dff, 7 << 8 | 0) \
  X(0x1e00, 0x1e3f, 7 << 8 | 5) \
  X(0x1e60, 0x1fff, 7 << 8 | 5) \
  X(0x2080, 0x20ff, 8 << 8 | 0) \
  X(0x2180, 0x21df, 7 << 8 | 5) \
  X(0x2200, 0x223f, 8 << 8 | 6) \
  X(0x2300, 0x237f, 9 << 8 | 0) \
  X(0x23a0, 0x23bf, 9 << 8 | 0) \
  X(0x23e0, 0x23ff, 9 << 8 | 0) \
  X(0x2400, 0x243f, 8 << 8 | 6) \
  X(0x2460, 0x25bf, 8 << 8 | 6) \
  X(0x25e0, 0x25ff, 8 << 8 | 6) \
  X(0x2680, 0x26bf, 8 << 8 | 9) \
  X(0x26e0, 0x27bf, 8 << 8 | 9) \
  X(0x27e0, 0x283f, 8 << 8 | 9) \
  X(0x2860, 0x28bf, 8 << 8 | 9) \
  X(0x28e0, 0x28ff, 8 << 8 | 9) \
  X(0x2900, 0x29ff, 10 << 8 | 0) \
  X(0x2b00, 0x2b1f, 11 << 8 | 0) \
  X(0x2b80, 0x2bbf, 12 << 8 | 0) \
  X(0x2c00, 0x2c1f, 12 << 8 | 0) \
  X(0x2c31, 0x2c31, 12 << 8 | 0) \
  X(0x2c33, 0x2c34, 12 << 8 | 0) \
  X(0x2c38, 0x2c3a, 12 << 8 | 0) \
  X(0x2c40, 0x2c7f, 12 << 8 | 0) \
  X(0x2d00, 0x2d1f, 12 << 8 | 0) \
  X(0x2d30, 0x2d30, 12 << 8 | 0) \
  X(0x2d39, 0x2d39, 12 << 8 | 0) \
  X(0x2d40, 0x2dff, 12 << 8 | 0) \
  X(0x2e00, 0x2e3f, 12 << 8 | 1) \
  X(0x2f00, 0x2f5f, 12 << 8 | 0) \
  X(0x3180, 0x31ff, 10 << 8 | 3) \
  X(0x3400, 0x341f, 11 << 8 | 0)

/* From guard-core/data/archs.toml: the first and the last toolkit that compiles for a
 * compute capability. A last one of 0: the newest toolkit still does. */
#define ARCH_MAKERS(X) \
  X(3 << 8 | 0, 7000, 10020) \
  X(3 << 8 | 2, 7000, 10020) \
  X(3 << 8 | 5, 7000, 11080) \
  X(3 << 8 | 7, 7000, 11080) \
  X(5 << 8 | 0, 7000, 12090) \
  X(5 << 8 | 2, 7000, 12090) \
  X(5 << 8 | 3, 7000, 12090) \
  X(6 << 8 | 0, 8000, 12090) \
  X(6 << 8 | 1, 8000, 12090) \
  X(6 << 8 | 2, 8000, 12090) \
  X(7 << 8 | 0, 9000, 12090) \
  X(7 << 8 | 2, 9010, 12090) \
  X(7 << 8 | 5, 10000, 0) \
  X(8 << 8 | 0, 11000, 0) \
  X(8 << 8 | 6, 11010, 0) \
  X(8 << 8 | 7, 11040, 0) \
  X(8 << 8 | 8, 13000, 0) \
  X(8 << 8 | 9, 11080, 0) \
  X(9 << 8 | 0, 11080, 0) \
  X(10 << 8 | 0, 12080, 0) \
  X(10 << 8 | 1, 12080, 12090) \
  X(10 << 8 | 3, 12090, 0) \
  X(10 << 8 | 7, 13040, 0) \
  X(11 << 8 | 0, 13000, 0) \
  X(12 << 8 | 0, 12080, 0) \
  X(12 << 8 | 1, 12090, 0)

#endif
