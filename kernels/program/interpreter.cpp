// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/integers.h"
#include "kernels/core/floats.h"
#include "kernels/program/scalar_ops.h"

namespace vitrine::kernels {

namespace {

constexpr int kWidth = kInterpreterWidth;
constexpr std::size_t kSlotBytes = sizeof(std::int64_t) * static_cast<std::size_t>(kWidth);

template <class T, class Body> void map1(T* out, const T* a, int count, const Body& body) {
    for (int i = 0; i < count; ++i) {
        out[i] = body(a[i]);
    }
}
template <class R, class T, class Body> void map2(R* out, const T* a, const T* b, int count, const Body& body) {
    for (int i = 0; i < count; ++i) {
        out[i] = static_cast<R>(body(a[i], b[i]));
    }
}

template <class T> void compare(ProgramOp op, std::uint8_t* out, const T* a, const T* b, int count) {
    scalar::useComparison<T>(op, [&](const auto& holds) { map2(out, a, b, count, holds); });
}

template <class T> void operation(ProgramOp op, T* out, const T* a, const T* b, int count) {
    if (!scalar::useUnary<T>(op, [&](const auto& function) { map1(out, a, count, function); }) &&
        !scalar::useBinary<T>(op, [&](const auto& function) { map2(out, a, b, count, function); })) {
        throw base::Internal("program: no form of " + std::string(programOpName(op)));
    }
}

void logicalOperation(ProgramOp op, std::uint8_t* out, const std::uint8_t* a, const std::uint8_t* b, int count) {
    switch (op) {
    case ProgramOp::And:
        return map2(out, a, b, count, [](int x, int y) { return x & y; });
    case ProgramOp::Or:
        return map2(out, a, b, count, [](int x, int y) { return x | y; });
    case ProgramOp::Xor:
        return map2(out, a, b, count, [](int x, int y) { return x ^ y; });
    default:
        return map1(out, a, count, [](std::uint8_t x) { return static_cast<std::uint8_t>(x ^ 1U); });
    }
}

template <class To, class From> void convert(To* out, const From* a, int count, bool toBool) {
    for (int i = 0; i < count; ++i) {
        if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
            out[i] = toBool ? static_cast<To>(a[i] != 0 ? 1 : 0) : scalar::truncated<To>(a[i]);
        } else {
            out[i] = toBool ? static_cast<To>(a[i] != 0 ? 1 : 0) : static_cast<To>(a[i]);
        }
    }
}

template <class To, class From> void gather(To* out, const void* data, const std::int64_t* offsets, int count) {
    const auto* from = static_cast<const From*>(data);
    for (int i = 0; i < count; ++i) {
        out[i] = static_cast<To>(from[offsets[i]]); // NOLINT(bugprone-signed-char-misuse): int8 is a number here
    }
}

} // namespace

template <class C> struct Interpreter<C>::State {
    const Program* program = nullptr;
    const CaptureBinding* binding = nullptr;
    std::vector<std::int32_t> roots;
    std::vector<std::int32_t> uniform, varying; ///< nodes in order, by whether keys, scores and gradients change them
    std::vector<std::uint8_t> isVarying;
    std::vector<std::uint8_t> spread;            ///< uniform nodes that a varying one or a caller reads as a vector
    std::vector<std::byte> memory;               ///< a slot of kSlotBytes each
    std::vector<std::vector<std::int64_t>> wide; ///< of Int32 roots
    std::vector<std::int64_t> offsets;
    ProgramRow row{-1, -1, -1};

    template <class T> T* slot(std::int32_t node) {
        return reinterpret_cast<T*>(memory.data() + base::toIndex(node) * kSlotBytes);
    }

    /// Calls body with a null pointer of the type that values of `type` are kept in.
    template <class Body> static void withType(ProgramType type, const Body& body) {
        switch (type) {
        case ProgramType::Bool:
            return body(static_cast<std::uint8_t*>(nullptr));
        case ProgramType::Int32:
            return body(static_cast<std::int32_t*>(nullptr));
        case ProgramType::Int64:
            return body(static_cast<std::int64_t*>(nullptr));
        case ProgramType::Float:
            return body(static_cast<C*>(nullptr));
        }
    }

    void plan() {
        const std::vector<unsigned> inputs = inputsOf(*program);
        std::vector<std::uint8_t> used(program->nodes.size(), 0);
        spread.assign(program->nodes.size(), 0);
        isVarying.assign(program->nodes.size(), 0);
        for (const std::int32_t root : roots) {
            used[base::toIndex(root)] = 1;
            spread[base::toIndex(root)] = 1;
        }
        for (std::size_t i = program->nodes.size(); i-- > 0;) {
            isVarying[i] = (inputs[i] & (kOnKey | kOnScore | kOnUpstream)) != 0 ? 1 : 0;
            for (const std::int32_t arg : argsOf(program->nodes[i])) {
                used[base::toIndex(arg)] |= used[i];
                spread[base::toIndex(arg)] |= used[i] & isVarying[i];
            }
        }
        for (std::size_t i = 0; i < program->nodes.size(); ++i) {
            if (used[i] != 0) {
                (isVarying[i] != 0 ? varying : uniform).push_back(static_cast<std::int32_t>(i));
            }
        }
        memory.resize(program->nodes.size() * kSlotBytes);
        offsets.resize(kWidth);
        wide.resize(roots.size());
    }

    void startRow(const ProgramRow& next) {
        row = next;
        for (const std::int32_t node : uniform) {
            compute(node, 0, 1, nullptr, nullptr);
            if (spread[base::toIndex(node)] != 0) {
                withType(program->at(node).type, [&]<class T>(T*) {
                    T* values = slot<T>(node);
                    std::fill(values + 1, values + kWidth, values[0]);
                });
            }
        }
    }

    void compute(std::int32_t index, std::int64_t key, int count, const C* scores, const C* upstream);
    void computeOperation(std::int32_t index, const ProgramNode& node, int count);
    void load(std::int32_t index, const ProgramNode& node, int count);
    void computeCast(std::int32_t index, const ProgramNode& node, int count);
};

template <class C> void Interpreter<C>::State::load(std::int32_t index, const ProgramNode& node, int count) {
    const TensorView& tensor = binding->tensors[base::toIndex(node.capture)];
    const std::span<const std::int32_t> args = argsOf(node);
    std::fill(offsets.begin(), offsets.begin() + count, 0);
    std::int64_t stride = 1;
    for (std::size_t dim = args.size(); dim-- > 0;) {
        const std::int64_t extent = tensor.shape[static_cast<int>(dim)];
        const std::int64_t step = dim == 0 ? tensor.stride0() : stride;
        const auto accumulate = [&](const auto* indices) {
            for (int i = 0; i < count; ++i) {
                const std::int64_t raw = indices[i];
                offsets[static_cast<std::size_t>(i)] +=
                    std::clamp<std::int64_t>(raw < 0 ? raw + extent : raw, 0, extent - 1) * step;
            }
        };
        if (program->at(args[dim]).type == ProgramType::Int64) {
            accumulate(slot<std::int64_t>(args[dim]));
        } else {
            accumulate(slot<std::int32_t>(args[dim]));
        }
        stride *= extent;
    }
    const std::int64_t* from = offsets.data();
    switch (tensor.dtype) {
    case DType::F32:
        return gather<C, float>(slot<C>(index), tensor.data, from, count);
    case DType::F64:
        return gather<C, double>(slot<C>(index), tensor.data, from, count);
    case DType::I32:
        return gather<std::int32_t, std::int32_t>(slot<std::int32_t>(index), tensor.data, from, count);
    case DType::I16:
        return gather<std::int32_t, std::int16_t>(slot<std::int32_t>(index), tensor.data, from, count);
    case DType::I8:
        return gather<std::int32_t, std::int8_t>(slot<std::int32_t>(index), tensor.data, from, count);
    case DType::U8:
        return gather<std::int32_t, std::uint8_t>(slot<std::int32_t>(index), tensor.data, from, count);
    case DType::I64:
        return gather<std::int64_t, std::int64_t>(slot<std::int64_t>(index), tensor.data, from, count);
    case DType::Bool: {
        auto* out = slot<std::uint8_t>(index);
        const auto* data = static_cast<const std::uint8_t*>(tensor.data);
        for (int i = 0; i < count; ++i) {
            out[i] = data[from[i]] != 0 ? 1 : 0;
        }
        return;
    }
    default: // BF16 and F16; checkCaptures let nothing else pass
        for (int i = 0; i < count; ++i) {
            loadFloats(tensor.dtype, tensor.data, from[i], 1, slot<C>(index) + i);
        }
    }
}

template <class C> void Interpreter<C>::State::computeCast(std::int32_t index, const ProgramNode& node, int count) {
    const std::int32_t from = node.args[0];
    withType(program->at(from).type, [&]<class From>(From*) {
        withType(node.type, [&]<class To>(To*) {
            convert(slot<To>(index), slot<From>(from), count, node.type == ProgramType::Bool);
        });
    });
}

template <class C>
void Interpreter<C>::State::computeOperation(std::int32_t index, const ProgramNode& node, int count) {
    const std::int32_t a = node.args[0];
    const std::int32_t b = node.args[1] < 0 ? a : node.args[1];
    if (node.op >= ProgramOp::Lt && node.op <= ProgramOp::Ne) {
        withType(program->at(a).type,
                 [&]<class T>(T*) { compare(node.op, slot<std::uint8_t>(index), slot<T>(a), slot<T>(b), count); });
        return;
    }
    switch (node.type) {
    case ProgramType::Bool:
        return logicalOperation(node.op, slot<std::uint8_t>(index), slot<std::uint8_t>(a), slot<std::uint8_t>(b),
                                count);
    case ProgramType::Int32:
        return operation(node.op, slot<std::int32_t>(index), slot<std::int32_t>(a), slot<std::int32_t>(b), count);
    case ProgramType::Int64:
        return operation(node.op, slot<std::int64_t>(index), slot<std::int64_t>(a), slot<std::int64_t>(b), count);
    case ProgramType::Float:
        return operation(node.op, slot<C>(index), slot<C>(a), slot<C>(b), count);
    }
}

template <class C>
void Interpreter<C>::State::compute(std::int32_t index, std::int64_t key, int count, const C* scores,
                                    const C* upstream) {
    const ProgramNode& node = program->at(index);
    const auto input = [&](const C* values) {
        if (values == nullptr) {
            throw base::Internal("program: it reads scores that were not given");
        }
        std::copy(values, values + count, slot<C>(index));
    };
    switch (node.op) {
    case ProgramOp::Score:
        return input(scores);
    case ProgramOp::Upstream:
        return input(upstream);
    case ProgramOp::Batch:
        *slot<std::int32_t>(index) = static_cast<std::int32_t>(row.batch);
        return;
    case ProgramOp::Head:
        *slot<std::int32_t>(index) = static_cast<std::int32_t>(row.head);
        return;
    case ProgramOp::Query:
        *slot<std::int32_t>(index) = static_cast<std::int32_t>(row.query);
        return;
    case ProgramOp::Key: {
        auto* out = slot<std::int32_t>(index);
        for (int i = 0; i < count; ++i) {
            out[i] = static_cast<std::int32_t>(key + i);
        }
        return;
    }
    case ProgramOp::Constant:
        withType(node.type, [&]<class T>(T*) {
            *slot<T>(index) =
                node.type == ProgramType::Float ? static_cast<T>(node.real) : static_cast<T>(node.integer);
        });
        return;
    case ProgramOp::Scalar:
    case ProgramOp::Load:
        return load(index, node, count);
    case ProgramOp::Select:
        withType(node.type, [&]<class T>(T*) {
            const auto* condition = slot<std::uint8_t>(node.args[0]);
            const T* a = slot<T>(node.args[1]);
            const T* b = slot<T>(node.args[2]);
            T* out = slot<T>(index);
            for (int i = 0; i < count; ++i) {
                out[i] = condition[i] != 0 ? a[i] : b[i];
            }
        });
        return;
    case ProgramOp::Cast:
        return computeCast(index, node, count);
    default:
        return computeOperation(index, node, count);
    }
}

template <class C>
Interpreter<C>::Interpreter(const Program& program, const CaptureBinding& binding, std::vector<std::int32_t> roots)
    : state_(std::make_unique<State>()) {
    checkCaptures(program, binding);
    state_->program = &program;
    state_->binding = &binding;
    state_->roots = roots.empty() ? std::vector<std::int32_t>{program.result} : std::move(roots);
    state_->plan();
}
template <class C> Interpreter<C>::~Interpreter() = default;
template <class C> Interpreter<C>::Interpreter(Interpreter&&) noexcept = default;
template <class C> Interpreter<C>& Interpreter<C>::operator=(Interpreter&&) noexcept = default;

template <class C>
void Interpreter<C>::run(const ProgramRow& row, std::int64_t key, int count, const C* scores, const C* upstream) {
    if (count < 0 || count > kInterpreterWidth) {
        throw base::Internal("program: a run of " + std::to_string(count) + " keys");
    }
    State& state = *state_;
    if (row.batch != state.row.batch || row.head != state.row.head || row.query != state.row.query) {
        state.startRow(row);
    }
    for (const std::int32_t node : state.varying) {
        state.compute(node, key, count, scores, upstream);
    }
}

template <class C> const C* Interpreter<C>::floats(int root) const {
    return state_->template slot<C>(state_->roots.at(base::toIndex(root)));
}

template <class C> const std::int64_t* Interpreter<C>::integers(int root) const {
    const std::int32_t node = state_->roots.at(base::toIndex(root));
    if (state_->program->at(node).type == ProgramType::Int64) {
        return state_->template slot<std::int64_t>(node);
    }
    const auto* narrow = state_->template slot<std::int32_t>(node);
    std::vector<std::int64_t>& wide = state_->wide[base::toIndex(root)];
    wide.assign(narrow, narrow + kWidth);
    return wide.data();
}

template <class C> const std::uint8_t* Interpreter<C>::booleans(int root) const {
    return state_->template slot<std::uint8_t>(state_->roots.at(base::toIndex(root)));
}

template class Interpreter<float>;
template class Interpreter<double>;

} // namespace vitrine::kernels
