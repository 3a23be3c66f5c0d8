// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/interval_analysis.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/integers.h"
#include "kernels/core/floats.h"
#include "kernels/program/interval.h"

namespace vitrine::kernels {

namespace {

/// As double and as float32: a backend may compute in either.
void holdReals(ValueRange& range, double low, double high) {
    range.realLow = std::min(low, static_cast<double>(static_cast<float>(low)));
    range.realHigh = std::max(high, static_cast<double>(static_cast<float>(high)));
}

/// Ranges over stretches of a captured tensor's last dimension. Keeps a copy of the contents.
template <class T> class RangeTable {
public:
    RangeTable(std::vector<T> values, std::int64_t rowLength) : values_(std::move(values)), rowLength_(rowLength) {
        sorted_ = true;
        for (std::size_t i = 1; i < values_.size() && sorted_; ++i) {
            sorted_ = i % base::toIndex(rowLength_) == 0 || values_[i - 1] <= values_[i];
        }
        if (!sorted_) {
            buildLevels();
        }
    }

    struct Pair {
        T low, high;
    };
    /// Elements first .. last of row `row`.
    Pair range(std::int64_t row, std::int64_t first, std::int64_t last) const {
        const std::size_t from = base::toIndex(row * rowLength_ + first);
        const std::size_t to = base::toIndex(row * rowLength_ + last);
        if (sorted_) {
            return {values_[from], values_[to]};
        }
        Pair out{values_[from], values_[from]};
        const auto scan = [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                out.low = std::min(out.low, values_[i]);
                out.high = std::max(out.high, values_[i]);
            }
        };
        const std::size_t firstBlock = (from + kBlock - 1) / kBlock;
        const std::size_t endBlock = (to + 1) / kBlock;
        if (firstBlock >= endBlock) {
            scan(from, to + 1);
            return out;
        }
        scan(from, firstBlock * kBlock);
        scan(endBlock * kBlock, to + 1);
        const auto level = static_cast<std::size_t>(std::bit_width(endBlock - firstBlock)) - 1;
        for (const std::size_t block : {firstBlock, endBlock - (std::size_t{1} << level)}) {
            out.low = std::min(out.low, levels_[level][block].low);
            out.high = std::max(out.high, levels_[level][block].high);
        }
        return out;
    }

private:
    static constexpr std::size_t kBlock = 32;

    /// Level n: ranges of 2^n neighbouring blocks, starting at every block.
    void buildLevels() {
        std::vector<Pair> level;
        for (std::size_t i = 0; i + kBlock <= values_.size(); i += kBlock) {
            Pair pair{values_[i], values_[i]};
            for (std::size_t j = i; j < i + kBlock; ++j) {
                pair.low = std::min(pair.low, values_[j]);
                pair.high = std::max(pair.high, values_[j]);
            }
            level.push_back(pair);
        }
        for (std::size_t half = 1; !level.empty(); half *= 2) {
            levels_.push_back(level);
            const std::vector<Pair>& below = levels_.back();
            level.clear();
            for (std::size_t i = 0; i + half < below.size() && i + 2 * half <= levels_.front().size(); ++i) {
                level.push_back(
                    {std::min(below[i].low, below[i + half].low), std::max(below[i].high, below[i + half].high)});
            }
        }
    }

    std::vector<T> values_;
    std::int64_t rowLength_;
    bool sorted_ = false; ///< every row ascends
    std::vector<std::vector<Pair>> levels_;
};

/// A captured tensor.
class CaptureRanges {
public:
    explicit CaptureRanges(const TensorView& tensor) : shape_(tensor.shape) {
        const ProgramType type = loadedType(tensor.dtype).value_or(ProgramType::Float);
        type_ = type;
        if (tensor.shape.count() > kLargest) {
            whole_ = true;
            return;
        }
        const std::int64_t rowLength = shape_.rank() == 0 ? 1 : shape_[shape_.rank() - 1];
        if (type == ProgramType::Float) {
            std::vector<double> values = read<double>(tensor);
            maybeNan_ = std::any_of(values.begin(), values.end(), [](double x) { return std::isnan(x); });
            if (maybeNan_) {
                whole_ = true;
                return;
            }
            floats_ = std::make_unique<RangeTable<double>>(std::move(values), rowLength);
        } else {
            integers_ = std::make_unique<RangeTable<std::int64_t>>(read<std::int64_t>(tensor), rowLength);
        }
    }

    /// Over the product of index ranges.
    ValueRange range(std::span<const ValueRange> indices) const {
        if (whole_) {
            return wholeRange(type_);
        }
        // At most two stretches a dimension: an index range around 0 reads both ends of the tensor.
        std::array<std::array<Stretch, 2>, kMaxCaptureRank> stretches{};
        std::array<int, kMaxCaptureRank> counts{1, 1, 1};
        for (std::size_t dim = 0; dim < indices.size(); ++dim) {
            counts[dim] = stretchesOf(indices[dim], shape_[static_cast<int>(dim)], stretches[dim]);
        }
        const int last = std::max(0, shape_.rank() - 1);
        Rows rows{0, 1};
        for (int dim = 0; dim < last; ++dim) {
            const Stretch only =
                counts[base::toIndex(dim)] == 1 ? stretches[base::toIndex(dim)][0] : Stretch{0, shape_[dim] - 1};
            rows.first = rows.first * shape_[dim] + only.first;
            if (only.first != only.last) {
                rows.count *= only.last - only.first + 1;
                // Rows of an outer range are neighbours only when the inner dimensions are read whole.
                if (dim + 1 < last) {
                    return wholeTensor();
                }
            }
        }
        if (rows.count > kMostRows) {
            return wholeTensor();
        }
        bool any = false;
        ValueRange out;
        for (int i = 0; i < counts[base::toIndex(last)]; ++i) {
            const Stretch stretch =
                shape_.rank() == 0 ? Stretch{0, 0} : stretches[base::toIndex(last)][base::toIndex(i)];
            for (std::int64_t row = rows.first; row < rows.first + rows.count; ++row) {
                const ValueRange part = rowRange(row, stretch.first, stretch.last);
                out = any ? hull(type_, out, part) : part;
                any = true;
            }
        }
        return out;
    }

private:
    static constexpr std::int64_t kLargest = std::int64_t{1} << 26;
    static constexpr std::int64_t kMostRows = 16;

    struct Stretch {
        std::int64_t first = 0, last = 0;
    };
    struct Rows {
        std::int64_t first, count;
    };

    template <class T> static std::vector<T> read(const TensorView& tensor) {
        const std::int64_t rows = tensor.shape.rank() == 0 ? 1 : tensor.shape[0];
        const std::int64_t rowSize = tensor.shape.count() / rows;
        const std::int64_t stride = tensor.shape.rank() == 0 ? 1 : tensor.stride0();
        std::vector<T> out(base::toIndex(tensor.shape.count()));
        for (std::int64_t row = 0; row < rows; ++row) {
            T* to = out.data() + row * rowSize;
            if constexpr (std::is_same_v<T, double>) {
                loadFloats(tensor.dtype, tensor.data, row * stride, rowSize, to);
            } else {
                readIntegers(tensor, row * stride, rowSize, to);
            }
        }
        return out;
    }

    static void readIntegers(const TensorView& tensor, std::int64_t offset, std::int64_t count, std::int64_t* out) {
        const auto copy = [&](const auto* from) { std::copy(from + offset, from + offset + count, out); };
        switch (tensor.dtype) {
        case DType::I64:
            return copy(tensor.as<const std::int64_t>());
        case DType::I32:
            return copy(tensor.as<const std::int32_t>());
        case DType::I16:
            return copy(tensor.as<const std::int16_t>());
        case DType::I8:
            return copy(tensor.as<const std::int8_t>());
        case DType::Bool: {
            const auto* from = tensor.as<const std::uint8_t>() + offset;
            std::transform(from, from + count, out, [](std::uint8_t x) { return x != 0 ? 1 : 0; });
            return;
        }
        default:
            return copy(tensor.as<const std::uint8_t>());
        }
    }

    static int stretchesOf(const ValueRange& index, std::int64_t extent, std::array<Stretch, 2>& out) {
        const auto place = [extent](std::int64_t i) {
            return std::clamp<std::int64_t>(i < 0 ? i + extent : i, 0, extent - 1);
        };
        if (index.low < 0 && index.high >= 0) {
            out[0] = {0, place(index.high)};
            out[1] = {place(std::max(index.low, -extent)), extent - 1};
            return 2;
        }
        out[0] = {place(index.low), place(index.high)};
        return 1;
    }

    ValueRange rowRange(std::int64_t row, std::int64_t first, std::int64_t last) const {
        if (integers_ != nullptr) {
            const auto pair = integers_->range(row, first, last);
            return integerRange(pair.low, pair.high);
        }
        const auto pair = floats_->range(row, first, last);
        ValueRange out;
        holdReals(out, pair.low, pair.high);
        return out;
    }

    ValueRange wholeTensor() const {
        const std::int64_t rowLength = shape_[shape_.rank() - 1];
        const std::int64_t rows = shape_.count() / rowLength;
        if (rows > 64) {
            return wholeRange(type_);
        }
        ValueRange out = rowRange(0, 0, rowLength - 1);
        for (std::int64_t row = 1; row < rows; ++row) {
            out = hull(type_, out, rowRange(row, 0, rowLength - 1));
        }
        return out;
    }

    Shape shape_;
    ProgramType type_ = ProgramType::Float;
    bool whole_ = false; ///< nothing is known
    bool maybeNan_ = false;
    std::unique_ptr<RangeTable<std::int64_t>> integers_;
    std::unique_ptr<RangeTable<double>> floats_;
};

} // namespace

struct IntervalAnalysis::State {
    const Program* program = nullptr;
    std::shared_ptr<const std::vector<CaptureRanges>> captures;
    std::vector<std::int32_t> moving; ///< nodes that a box changes
    std::vector<ValueRange> ranges;

    void compute(std::int32_t index, const ProgramBox& box) {
        const ProgramNode& node = program->at(index);
        ValueRange& out = ranges[base::toIndex(index)];
        const auto arg = [&](std::size_t i) -> const ValueRange& { return ranges[base::toIndex(node.args[i])]; };
        switch (node.op) {
        case ProgramOp::Batch:
            out = integerRange(box.batchLow, box.batchHigh);
            return;
        case ProgramOp::Head:
            out = integerRange(box.headLow, box.headHigh);
            return;
        case ProgramOp::Query:
            out = integerRange(box.queryLow, box.queryHigh);
            return;
        case ProgramOp::Key:
            out = integerRange(box.keyLow, box.keyHigh);
            return;
        case ProgramOp::Score:
        case ProgramOp::Upstream:
            out = wholeRange(node.type);
            return;
        case ProgramOp::Constant:
            out = exactRange(node.integer);
            holdReals(out, node.real, node.real);
            out.maybeNan = std::isnan(node.real);
            return;
        case ProgramOp::Scalar:
        case ProgramOp::Load: {
            std::array<ValueRange, kMaxCaptureRank> indices;
            const std::size_t count = argsOf(node).size();
            for (std::size_t i = 0; i < count; ++i) {
                indices[i] = arg(i);
            }
            out = (*captures)[base::toIndex(node.capture)].range({indices.data(), count});
            return;
        }
        case ProgramOp::Select:
            out = arg(0).certain(true) ? arg(1) : arg(0).certain(false) ? arg(2) : hull(node.type, arg(1), arg(2));
            return;
        case ProgramOp::Cast:
            out = castRange(node.type, program->at(node.args[0]).type, arg(0));
            return;
        default:
            out = rangeOf(node.op, node.type, program->at(node.args[0]).type, arg(0), arg(node.args[1] < 0 ? 0 : 1));
        }
    }
};

IntervalAnalysis::IntervalAnalysis(const Program& program, const CaptureBinding& binding)
    : state_(std::make_unique<State>()) {
    checkCaptures(program, binding);
    std::vector<CaptureRanges> captures;
    captures.reserve(program.captures.size());
    for (std::size_t i = 0; i < program.captures.size(); ++i) {
        captures.emplace_back(binding.tensors[i]);
    }
    state_->captures = std::make_shared<const std::vector<CaptureRanges>>(std::move(captures));
    state_->program = &program;
    state_->ranges.resize(program.nodes.size());
    const std::vector<unsigned> inputs = inputsOf(program);
    for (std::size_t i = 0; i < program.nodes.size(); ++i) {
        if ((inputs[i] & ~static_cast<unsigned>(kOnCaptures)) != 0) {
            state_->moving.push_back(static_cast<std::int32_t>(i));
        } else {
            state_->compute(static_cast<std::int32_t>(i), {});
        }
    }
}

IntervalAnalysis::~IntervalAnalysis() = default;
IntervalAnalysis::IntervalAnalysis(IntervalAnalysis&&) noexcept = default;
IntervalAnalysis& IntervalAnalysis::operator=(IntervalAnalysis&&) noexcept = default;

IntervalAnalysis IntervalAnalysis::forAnotherThread() const {
    IntervalAnalysis other(*this, 0);
    return other;
}

IntervalAnalysis::IntervalAnalysis(const IntervalAnalysis& from, int) : state_(std::make_unique<State>(*from.state_)) {}

MaskVerdict IntervalAnalysis::mask(const ProgramBox& box) {
    for (const std::int32_t node : state_->moving) {
        state_->compute(node, box);
    }
    const ValueRange& result = state_->ranges[base::toIndex(state_->program->result)];
    return result.certain(true)    ? MaskVerdict::Full
           : result.certain(false) ? MaskVerdict::Empty
                                   : MaskVerdict::Undecided;
}

IntervalAnalysis::Range IntervalAnalysis::range(std::int32_t node) const {
    const ValueRange& range = state_->ranges[base::toIndex(node)];
    if (state_->program->at(node).type == ProgramType::Float) {
        return {range.realLow, range.realHigh};
    }
    return {static_cast<double>(range.low), static_cast<double>(range.high)};
}

} // namespace vitrine::kernels
