// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/weight_product.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/core/floats.h"
#include "kernels/cpu/tile_kernels.h"
#include "kernels/ops/linear/gemv.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kTileDepth = 256;     ///< of the contracted axis; a multiple of a quantization group
constexpr std::int64_t kPreparedBlock = 128; ///< the longest unit that a kernel permutes

const std::byte* bytesAt(const void* data, DType dtype, std::int64_t element) {
    return static_cast<const std::byte*>(data) + bytesOf(dtype, element);
}

/// Scales finished sums, adds bias and residual and writes them, rounded once.
template <class C>
void finishRow(const Product& product, std::int64_t row, std::int64_t outBegin, std::int64_t outCount, C* sums) {
    C addend[kGemvOutputs];
    if (product.scale != 1) {
        std::for_each(sums, sums + outCount, [&](C& sum) { sum *= static_cast<C>(product.scale); });
    }
    if (!product.bias.empty()) {
        loadFloats(product.bias.dtype, product.bias.data, outBegin, outCount, addend);
        for (std::int64_t o = 0; o < outCount; ++o) {
            sums[o] += addend[o];
        }
    }
    const std::int64_t outRow = product.outRow(row);
    if (!product.residual.empty()) {
        loadFloats(product.residual.dtype, product.residual.data, outRow * product.residual.stride0() + outBegin,
                   outCount, addend);
        for (std::int64_t o = 0; o < outCount; ++o) {
            sums[o] += addend[o];
        }
    }
    storeFloats(product.out.dtype, sums, outCount, product.out.data, outRow * product.out.stride0() + outBegin);
}

/// Outputs [outBegin, outBegin + outCount) of transposed storage over part of the contracted axis, as a panel; missing
/// outputs are zeros.
void makePanel(const MatrixRef& matrix, std::int64_t outBegin, std::int64_t outCount, std::int64_t inBegin,
               std::int64_t inCount, float* panel) {
    for (std::int64_t i = 0; i < inCount; ++i) {
        float* line = panel + i * kPanelOutputs;
        loadWeights(matrix, inBegin + i, outBegin, outCount, line);
        std::fill(line + outCount, line + kPanelOutputs, 0.0F);
    }
}

/// Rows of x that is stored (in, rows), as float32 with kTileDepth between rows. A few stored lines at a time, so that
/// both sides stay in the first-level cache.
void transposeRows(const TensorView& x, std::int64_t rowBegin, std::int64_t rowCount, std::int64_t inBegin,
                   std::int64_t inCount, float* rows) {
    constexpr std::int64_t kLines = 16;
    float lines[kLines * kTileRows];
    for (std::int64_t begin = 0; begin < inCount; begin += kLines) {
        const std::int64_t count = std::min(kLines, inCount - begin);
        for (std::int64_t i = 0; i < count; ++i) {
            loadFloats(x.dtype, x.data, (inBegin + begin + i) * x.stride0() + rowBegin, rowCount,
                       lines + i * kTileRows);
        }
        for (std::int64_t r = 0; r < rowCount; ++r) {
            for (std::int64_t i = 0; i < count; ++i) {
                rows[r * kTileDepth + begin + i] = lines[i * kTileRows + r];
            }
        }
    }
}

/// Rows of x as float32: where they are, or converted.
const float* floatRows(const Product& product, std::int64_t rowBegin, std::int64_t rowCount, std::int64_t inBegin,
                       std::int64_t inCount, float* buffer, std::int64_t& stride) {
    const TensorView& x = product.x;
    if (product.transposedX) {
        transposeRows(x, rowBegin, rowCount, inBegin, inCount, buffer);
        stride = kTileDepth;
        return buffer;
    }
    if (x.dtype == DType::F32 && product.pairs == nullptr) {
        stride = x.stride0();
        return x.as<const float>() + rowBegin * x.stride0() + inBegin;
    }
    for (std::int64_t r = 0; r < rowCount; ++r) {
        loadFloats(x.dtype, x.data, product.xRow(rowBegin + r) * x.stride0() + inBegin, inCount,
                   buffer + r * kTileDepth);
    }
    stride = kTileDepth;
    return buffer;
}

/// Elements [begin, begin + count) of a column of a matrix whose rows lie `stride` apart.
void loadColumn(DType dtype, const void* data, std::int64_t stride, std::int64_t column, std::int64_t begin,
                std::int64_t count, double* out) {
    for (std::int64_t i = 0; i < count; ++i) {
        loadFloats(dtype, data, (begin + i) * stride + column, 1, out + i);
    }
}

/// Elements of x as float32 in the order in which the kernels of a level unpack weights.
class PreparedOrder {
public:
    PreparedOrder(SimdLevel simd, const MatrixRef& matrix) {
        if (simd == SimdLevel::Scalar || matrix.transposed) {
            return;
        }
        const bool wide = simd == SimdLevel::Avx512;
        for (std::int64_t i = 0; i < kPreparedBlock; ++i) {
            const std::int64_t at = wide ? preparedIndexAvx512(matrix, i) : preparedIndexAvx2(matrix, i);
            from_[at] = static_cast<std::uint8_t>(i);
            form_ = at == i ? form_ : Form::Mixed;
        }
        if (matrix.dtype == DType::BF16) {
            form_ = wide ? Form::Split16 : Form::Split8;
        }
    }

    /// Elements [begin, begin + count) of a row, and zeros up to a whole block.
    void load(const TensorView& x, std::int64_t row, std::int64_t begin, std::int64_t count, float* out) const {
        const std::int64_t offset = row * x.stride0() + begin;
        if (form_ == Form::AsIs) {
            loadFloats(x.dtype, x.data, offset, count, out);
            std::fill(out + count, out + preparedSize(count), 0.0F);
            return;
        }
        for (std::int64_t block = 0; block < count; block += kPreparedBlock) {
            float values[kPreparedBlock] = {};
            loadFloats(x.dtype, x.data, offset + block, std::min(kPreparedBlock, count - block), values);
            if (form_ == Form::Mixed) {
                for (std::int64_t i = 0; i < kPreparedBlock; ++i) {
                    out[block + i] = values[from_[i]];
                }
            } else if (form_ == Form::Split16) {
                split<16>(values, out + block);
            } else {
                split<8>(values, out + block);
            }
        }
    }

private:
    /// BF16 pairs are split into even and odd elements, `Lanes` of each at a time: known here, so that it vectorises.
    enum class Form : std::uint8_t { AsIs, Split8, Split16, Mixed };

    template <int Lanes> static void split(const float* values, float* out) {
        for (std::int64_t k = 0; k < kPreparedBlock; k += 2 * Lanes) {
            for (std::int64_t i = 0; i < Lanes; ++i) {
                out[k + i] = values[k + 2 * i];
                out[k + Lanes + i] = values[k + 2 * i + 1];
            }
        }
    }

    std::uint8_t from_[kPreparedBlock] = {};
    Form form_ = Form::AsIs;
};

void addDots(SimdLevel simd, const DotTileCall& call) {
    switch (simd) {
    case SimdLevel::Avx512:
        return addDotsAvx512(call);
    case SimdLevel::Avx2:
        return addDotsAvx2(call);
    case SimdLevel::Scalar:
        return addDotsScalar(call);
    }
}

void sumDots(SimdLevel simd, const DotTileCall& call, float* sums) {
    switch (simd) {
    case SimdLevel::Avx512:
        return sumDotsAvx512(call, sums);
    case SimdLevel::Avx2:
        return sumDotsAvx2(call, sums);
    case SimdLevel::Scalar:
        return sumDotsScalar(call, sums);
    }
}

/// At most kDotRows rows and kTileOutputs outputs of a matrix that is not transposed.
void multiplyByDots(SimdLevel simd, const Product& product, std::int64_t rowBegin, std::int64_t rowCount,
                    std::int64_t outBegin, std::int64_t outCount) {
    alignas(64) float x[kDotRows * kDotDepth];
    alignas(64) float lanes[kTileOutputs * kDotRows * kDotLanes];
    alignas(64) float sums[kDotRows * kTileOutputs];
    std::fill(lanes, lanes + outCount * kDotRows * kDotLanes, 0.0F);
    const PreparedOrder order(simd, product.matrix);
    DotTileCall call{product.matrix, x, rowCount, outBegin, outCount, 0, 0, lanes};
    for (; call.begin < product.matrix.in; call.begin += kDotDepth) {
        call.count = std::min(kDotDepth, product.matrix.in - call.begin);
        for (std::int64_t r = 0; r < rowCount; ++r) {
            order.load(product.x, product.xRow(rowBegin + r), call.begin, call.count, x + r * kDotDepth);
        }
        addDots(simd, call);
    }
    sumDots(simd, call, sums);
    for (std::int64_t r = 0; r < rowCount; ++r) {
        finishRow(product, rowBegin + r, outBegin, outCount, sums + r * kTileOutputs);
    }
}

} // namespace

MatrixRef matrixOf(const WeightView& weight, std::int64_t expert) {
    MatrixRef matrix;
    matrix.out = weight.outFeatures();
    matrix.in = weight.inFeatures();
    matrix.format = weight.format;
    if (weight.quantized()) {
        matrix.packing = packedMatrixOf(weight, expert);
        return matrix;
    }
    const TensorView& dense = weight.data;
    matrix.dtype = dense.dtype;
    matrix.transposed = weight.transposed;
    const bool stack = dense.shape.rank() == 3;
    matrix.stride = stack ? dense.shape[2] : dense.stride0();
    matrix.data = bytesAt(dense.data, dense.dtype, stack ? expert * dense.stride0() : 0);
    return matrix;
}

void loadWeights(const MatrixRef& matrix, std::int64_t row, std::int64_t begin, std::int64_t count, float* out) {
    if (matrix.packed()) {
        matrix.packing.format->expand(matrix.packing, row, begin, count, out);
    } else {
        loadFloats(matrix.dtype, matrix.data, row * matrix.stride + begin, count, out);
    }
}

Product weightGradientProduct(const TensorView& x, const TensorView& gradOut, const TensorView& gradWeight,
                              bool accumulate) {
    // x is a matrix that leads from the batch's rows to its columns: stored (in, out) as a transposed weight is.
    Product product;
    product.matrix.dtype = x.dtype;
    product.matrix.data = x.data;
    product.matrix.out = x.shape[1];
    product.matrix.in = x.shape[0];
    product.matrix.stride = x.stride0();
    product.matrix.transposed = true;
    product.x = gradOut;
    product.transposedX = true;
    product.out = gradWeight;
    product.residual = accumulate ? gradWeight : TensorView{};
    product.rows = gradOut.shape[1];
    return product;
}

std::int64_t preparedSize(std::int64_t in) {
    return (in + kPreparedBlock - 1) / kPreparedBlock * kPreparedBlock;
}

void prepareRow(SimdLevel simd, const MatrixRef& matrix, const TensorView& x, std::int64_t row, float* prepared) {
    PreparedOrder(simd, matrix).load(x, row, 0, matrix.in, prepared);
}

void multiplyFewRows(SimdLevel simd, const Product& product, const float* prepared, std::int64_t rowBegin,
                     std::int64_t rowCount, std::int64_t outBegin, std::int64_t outCount) {
    float sums[kGemvRows * kGemvOutputs];
    GemvCall call;
    call.matrix = product.matrix;
    call.rows = rowCount;
    call.outBegin = outBegin;
    call.outCount = outCount;
    call.y = sums;
    for (std::int64_t r = 0; r < rowCount; ++r) {
        call.x[r] = prepared + product.xRow(rowBegin + r) * preparedSize(product.matrix.in);
    }
    switch (simd) {
    case SimdLevel::Avx512:
        gemvAvx512(call);
        break;
    case SimdLevel::Avx2:
        gemvAvx2(call);
        break;
    case SimdLevel::Scalar:
        gemvScalar(call);
        break;
    }
    for (std::int64_t r = 0; r < rowCount; ++r) {
        finishRow(product, rowBegin + r, outBegin, outCount, sums + r * kGemvOutputs);
    }
}

void multiplyTile(SimdLevel simd, const Product& product, std::int64_t rowBegin, std::int64_t rowCount,
                  std::int64_t outBegin, std::int64_t outCount) {
    if (!product.matrix.transposed) {
        for (std::int64_t r = 0; r < rowCount; r += kDotRows) {
            multiplyByDots(simd, product, rowBegin + r, std::min(kDotRows, rowCount - r), outBegin, outCount);
        }
        return;
    }
    alignas(64) float sums[kTileRows * kTileOutputs];
    alignas(64) float xBuffer[kTileRows * kTileDepth];
    alignas(64) float panel[kTileDepth * kPanelOutputs];
    const std::int64_t in = product.matrix.in;
    TileCall call;
    call.rows = rowCount;
    call.panel = panel;
    call.sumsStride = kTileOutputs;
    std::fill(sums, sums + (in == 0 ? rowCount * kTileOutputs : 0), 0.0F);
    for (std::int64_t begin = 0; begin < in; begin += kTileDepth) {
        call.depth = std::min(kTileDepth, in - begin);
        call.x = floatRows(product, rowBegin, rowCount, begin, call.depth, xBuffer, call.xStride);
        call.add = begin != 0;
        for (std::int64_t o = 0; o < outCount; o += kPanelOutputs) {
            makePanel(product.matrix, outBegin + o, std::min(kPanelOutputs, outCount - o), begin, call.depth, panel);
            call.sums = sums + o;
            multiplyPanel(simd, call);
        }
    }
    for (std::int64_t r = 0; r < rowCount; ++r) {
        finishRow(product, rowBegin + r, outBegin, outCount, sums + r * kTileOutputs);
    }
}

void multiplyDouble(const Product& product, std::int64_t rowBegin, std::int64_t rowCount, std::int64_t outBegin,
                    std::int64_t outCount) {
    const MatrixRef& matrix = product.matrix;
    double x[kTileDepth];
    double w[kTileDepth];
    float expanded[kTileDepth];
    for (std::int64_t r = rowBegin; r < rowBegin + rowCount; ++r) {
        double sums[kTileOutputs] = {};
        for (std::int64_t begin = 0; begin < matrix.in; begin += kTileDepth) {
            const std::int64_t depth = std::min(kTileDepth, matrix.in - begin);
            if (product.transposedX) {
                loadColumn(product.x.dtype, product.x.data, product.x.stride0(), r, begin, depth, x);
            } else {
                loadFloats(product.x.dtype, product.x.data, product.xRow(r) * product.x.stride0() + begin, depth, x);
            }
            for (std::int64_t o = 0; o < outCount; ++o) {
                const std::int64_t out = outBegin + o;
                if (matrix.packed()) {
                    loadWeights(matrix, out, begin, depth, expanded);
                    std::copy(expanded, expanded + depth, w);
                } else if (matrix.transposed) {
                    loadColumn(matrix.dtype, matrix.data, matrix.stride, out, begin, depth, w);
                } else {
                    loadFloats(matrix.dtype, matrix.data, out * matrix.stride + begin, depth, w);
                }
                for (std::int64_t i = 0; i < depth; ++i) {
                    sums[o] += x[i] * w[i];
                }
            }
        }
        finishRow(product, r, outBegin, outCount, sums);
    }
}

void multiplyByTiles(CpuContext& context, const Product& product) {
    const std::int64_t outTiles = (product.matrix.out + kTileOutputs - 1) / kTileOutputs;
    const std::int64_t rowTiles = (product.rows + kTileRows - 1) / kTileRows;
    const bool wide = product.x.dtype == DType::F64;
    const SimdLevel simd = context.simd();
    context.pool().parallelFor(outTiles * rowTiles, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t tile = begin; tile < end; ++tile) {
            const std::int64_t row = tile / outTiles * kTileRows;
            const std::int64_t out = tile % outTiles * kTileOutputs;
            const std::int64_t rowCount = std::min(kTileRows, product.rows - row);
            const std::int64_t outCount = std::min(kTileOutputs, product.matrix.out - out);
            if (wide) {
                multiplyDouble(product, row, rowCount, out, outCount);
            } else {
                multiplyTile(simd, product, row, rowCount, out, outCount);
            }
        }
    });
}

} // namespace vitrine::kernels
