// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// GPTQ (Frantar et al. 2022): rounds the columns of a matrix one after the other and spreads the error of each over the
// columns that are left, so that the products with typical inputs change least. It is what `convert --calibrate` does.
//
//     H = sum x x^T over inputs x, damped by a hundredth of its mean diagonal;  H^-1 = U^T U
//     for each column i:  e = (w_i - q_i) / U_ii;  w_j -= e U_ij for all j > i

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "engine/quant/matrix_packer.h"

namespace vitrine::engine {

/// x^T x of rows (rows, in), as (in, in) of doubles. Does not depend on the number of threads.
std::vector<double> productOfInputs(std::span<const float> rows, std::int64_t in, base::ThreadPool& pool);

/// U, upper triangular (in, in), of the inverse of the damped matrix. Inputs that were always 0 get the diagonal 1.
/// Throws BadInput when the matrix is not that of finite inputs.
std::vector<float> inverseFactor(std::vector<double> products, std::int64_t in, base::ThreadPool& pool);

/// Packs as packMatrix() does, with the errors spread by `factor`. REQUIRES a packing of integers.
PackedValues packCompensated(const WeightPacking& packing, const MatrixSize& size, bool symmetric, kernels::DType dtype,
                             std::vector<float> values, std::span<const float> factor, base::ThreadPool& pool);

} // namespace vitrine::engine
