// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Numbers of weight formats for device code: those of kernels/core/weight_view.h.

#define VT_FORMAT_DENSE 0
#define VT_FORMAT_MXFP4 1
#define VT_FORMAT_NF4 2
#define VT_FORMAT_INT4 3
#define VT_FORMAT_INT8 4
#define VT_FORMAT_FP8 5
#define VT_FORMAT_Q4_K 6
#define VT_FORMAT_Q6_K 7
#define VT_FORMAT_Q4_1 8
#define VT_FORMAT_Q5_1 9
#define VT_FORMAT_Q5_K 10
