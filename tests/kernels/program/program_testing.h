// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What tests of programs share: expressions with operators, captured tensors, random programs.

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/core/floats.h"
#include "kernels/program/program_builder.h"

namespace vitrine::kernels::testing {

/// A value of a builder that reads like Python.
struct Expr {
    ProgramBuilder* builder = nullptr;
    ProgramBuilder::Value value = -1;

    Expr make(ProgramOp op, const Expr& right) const { return {builder, builder->binary(op, value, right.value)}; }
    Expr of(ProgramOp op) const { return {builder, builder->unary(op, value)}; }
    Expr number(double v) const { return {builder, builder->constant(v)}; }
    Expr number(int v) const { return {builder, builder->constant(std::int64_t{v})}; }
    Expr operator~() const { return of(ProgramOp::Not); }
    Expr operator-() const { return of(ProgramOp::Neg); }
    Expr to(ProgramType type) const { return {builder, builder->cast(type, value)}; }
};
#define VITRINE_EXPR(symbol, op)                                                                                       \
    inline Expr operator symbol(const Expr& a, const Expr& b) {                                                        \
        return a.make(ProgramOp::op, b);                                                                               \
    }                                                                                                                  \
    template <class N>                                                                                                 \
        requires std::is_arithmetic_v<N>                                                                               \
    Expr operator symbol(const Expr& a, N b) {                                                                         \
        return a.make(ProgramOp::op, a.number(b));                                                                     \
    }
VITRINE_EXPR(+, Add)
VITRINE_EXPR(-, Sub)
VITRINE_EXPR(*, Mul)
VITRINE_EXPR(/, Div)
VITRINE_EXPR(%, Mod)
VITRINE_EXPR(<, Lt)
VITRINE_EXPR(<=, Le)
VITRINE_EXPR(==, Eq)
VITRINE_EXPR(!=, Ne)
VITRINE_EXPR(&, And)
VITRINE_EXPR(|, Or)
VITRINE_EXPR(^, Xor)
#undef VITRINE_EXPR
inline Expr operator>=(const Expr& a, const Expr& b) {
    return b <= a;
}
inline Expr operator>(const Expr& a, const Expr& b) {
    return b < a;
}
inline Expr floorDiv(const Expr& a, const Expr& b) {
    return a.make(ProgramOp::FloorDiv, b);
}
inline Expr floorDiv(const Expr& a, int b) {
    return floorDiv(a, a.number(b));
}
inline Expr where(const Expr& c, const Expr& a, const Expr& b) {
    return {c.builder, c.builder->select(c.value, a.value, b.value)};
}

/// A program under construction with its inputs at hand.
struct Maker {
    std::unique_ptr<ProgramBuilder> builder = std::make_unique<ProgramBuilder>();
    Expr score = input(ProgramOp::Score), b = input(ProgramOp::Batch), h = input(ProgramOp::Head),
         q = input(ProgramOp::Query), k = input(ProgramOp::Key);

    Expr input(ProgramOp op) { return {builder.get(), builder->input(op)}; }
    Expr number(double v) { return {builder.get(), builder->constant(v)}; }
    Expr number(int v) { return {builder.get(), builder->constant(std::int64_t{v})}; }
    Expr load(const std::string& name, ProgramType type, const std::vector<Expr>& at, bool differentiable = false) {
        const std::int32_t capture = builder->capture({name, type, static_cast<int>(at.size()), differentiable});
        std::vector<ProgramBuilder::Value> indices;
        for (const Expr& index : at) {
            indices.push_back(index.value);
        }
        return {builder.get(), builder->load(capture, indices)};
    }
    Program finish(const Expr& result) const { return builder->finish(result.value); }
};

/// Captured contents that live as long as this.
struct Captures {
    std::vector<std::unique_ptr<std::vector<std::int32_t>>> integers;
    std::vector<std::unique_ptr<std::vector<float>>> floats;
    CaptureBinding binding;

    Captures& add(std::vector<std::int32_t> values, const Shape& shape) {
        integers.push_back(std::make_unique<std::vector<std::int32_t>>(std::move(values)));
        binding.tensors.push_back({integers.back()->data(), DType::I32, shape, 0});
        return *this;
    }
    Captures& add(std::vector<float> values, const Shape& shape) {
        floats.push_back(std::make_unique<std::vector<float>>(std::move(values)));
        binding.tensors.push_back({floats.back()->data(), DType::F32, shape, 0});
        return *this;
    }
};

/// Random programs over the inputs, a captured document id (named "ids", of `length` positions, ascending or not), a
/// table by head and a float table.
class RandomProgram {
public:
    RandomProgram(std::mt19937& random, std::int64_t length, std::int64_t heads) : random_(random), length_(length) {
        std::vector<std::int32_t> ids, table;
        const bool sorted = pick(2) == 0;
        for (std::int64_t i = 0; i < length; ++i) {
            ids.push_back(sorted ? (ids.empty() ? 0 : ids.back() + (pick(9) == 0 ? 1 : 0)) : pick(4));
        }
        for (std::int64_t i = 0; i < heads; ++i) {
            table.push_back(pick(30) - 4);
        }
        std::vector<float> bias;
        for (std::int64_t i = 0; i < heads * 7; ++i) {
            bias.push_back(static_cast<float>(pick(100)) / 50 - 1);
        }
        ids_ = std::move(ids);
        table_ = std::move(table);
        bias_ = std::move(bias);
        heads_ = heads;
    }

    Program mask() {
        maker_ = Maker();
        return maker_.finish(boolean(3));
    }
    /// Smooth nearly everywhere.
    Program score() {
        maker_ = Maker();
        return maker_.finish(real(4));
    }
    /// Contents of what `program` captures.
    Captures captures(const Program& program) const {
        Captures out;
        for (const ProgramCapture& capture : program.captures) {
            if (capture.name == "ids") {
                out.add(ids_, Shape{length_});
            } else if (capture.name == "table") {
                out.add(table_, Shape{heads_});
            } else {
                out.add(bias_, Shape{heads_, 7});
            }
        }
        return out;
    }

private:
    int pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

    Expr ids(const Expr& index) { return maker_.load("ids", ProgramType::Int32, {index}); }
    Expr position() { return pick(2) == 0 ? maker_.q : maker_.k; }

    Expr integer(int depth) {
        if (depth <= 0 || pick(4) == 0) {
            switch (pick(8)) {
            case 0:
                return maker_.b;
            case 1:
                return maker_.h;
            case 2:
                return maker_.number(pick(40) - 6) + maker_.b * 0;
            case 3:
                return ids(position());
            case 4:
                return maker_.load("table", ProgramType::Int32, {maker_.h});
            default:
                return position();
            }
        }
        const Expr a = integer(depth - 1);
        switch (pick(12)) {
        case 0:
            return a % (pick(12) + 1);
        case 1:
            return floorDiv(a, pick(12) + 1);
        case 2:
            return a % (-pick(5) - 1);
        case 3:
            return floorDiv(a, integer(depth - 1));
        case 4:
            return a * (pick(5) - 2);
        case 5:
            return a.of(ProgramOp::Abs);
        case 6:
            return a.make(pick(2) == 0 ? ProgramOp::Min : ProgramOp::Max, integer(depth - 1));
        case 7:
            return where(boolean(depth - 1), a, integer(depth - 1));
        case 8:
            return a.to(ProgramType::Int64).make(ProgramOp::ShiftLeft, maker_.number(1));
        case 9:
            return a * integer(depth - 1);
        default:
            return pick(2) == 0 ? a + integer(depth - 1) : a - integer(depth - 1);
        }
    }

    Expr comparison(int depth) {
        const Expr a = integer(depth);
        const Expr b = integer(depth);
        switch (pick(5)) {
        case 0:
            return a < b;
        case 1:
            return a == b;
        case 2:
            return a != b;
        case 3:
            return ids(maker_.q) == ids(maker_.k);
        default:
            return a <= b;
        }
    }

    Expr boolean(int depth) {
        if (depth <= 0 || pick(4) == 0) {
            return comparison(std::min(depth, 2));
        }
        switch (pick(6)) {
        case 0:
            return ~boolean(depth - 1);
        case 1:
            return boolean(depth - 1) | boolean(depth - 1);
        case 2:
            return boolean(depth - 1) ^ boolean(depth - 1);
        case 3:
            return maker_.q >= maker_.k;
        default:
            return boolean(depth - 1) & boolean(depth - 1);
        }
    }

    Expr real(int depth) {
        if (depth <= 0 || pick(6) == 0) {
            switch (pick(4)) {
            case 0:
                return maker_.load("bias", ProgramType::Float, {maker_.h, (maker_.q - maker_.k) % 7}, true);
            case 1:
                return (maker_.q - maker_.k).to(ProgramType::Float) * 0.01;
            default:
                return maker_.score;
            }
        }
        const Expr a = real(depth - 1);
        switch (pick(16)) {
        case 0:
            return a.of(ProgramOp::Tanh);
        case 1:
            return a.of(ProgramOp::Sigmoid);
        case 2:
            return (a * 0.3).of(ProgramOp::Exp);
        case 3:
            return (a.of(ProgramOp::Abs) + 0.7).of(pick(2) == 0 ? ProgramOp::Log : ProgramOp::Rsqrt);
        case 4:
            return (a * a + 0.5).of(pick(2) == 0 ? ProgramOp::Sqrt : ProgramOp::Log2);
        case 5:
            return a.of(pick(2) == 0 ? ProgramOp::Sin : ProgramOp::Cos);
        case 6:
            return pick(2) == 0 ? a.of(ProgramOp::Erf)
                                : a.make(ProgramOp::Atan2, real(depth - 1).of(ProgramOp::Abs) + 0.6);
        case 7:
            return a.make(pick(2) == 0 ? ProgramOp::Min : ProgramOp::Max, real(depth - 1));
        case 8:
            return where(comparison(1), a, real(depth - 1));
        case 9:
            return a / (real(depth - 1).of(ProgramOp::Abs) + 1.5);
        case 10:
            return (a * 0.2).of(pick(2) == 0 ? ProgramOp::Exp2 : ProgramOp::Expm1);
        case 11:
            return (a.of(ProgramOp::Abs) + 0.9).make(ProgramOp::Pow, real(depth - 1));
        case 12:
            return -a * 0.5;
        case 13:
            return a * real(depth - 1);
        default:
            return pick(2) == 0 ? a + real(depth - 1) : a - real(depth - 1);
        }
    }

    std::mt19937& random_;
    std::int64_t length_, heads_ = 1;
    std::vector<std::int32_t> ids_, table_;
    std::vector<float> bias_;
    Maker maker_;
};

} // namespace vitrine::kernels::testing
