// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Dtype numbers for device code: those of kernels/core/dtype.h.

#define VT_F64 1
#define VT_F32 2
#define VT_BF16 3
#define VT_F16 4
#define VT_I32 6
#define VT_I8 8
#define VT_U8 9
#define VT_F8E4M3 14
