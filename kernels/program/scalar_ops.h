// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Operations of programs as functions of scalars: constant folding applies one to two numbers, the interpreter to
// vectors. Each hands the function of `op` on type T to `use` and says false when there is none.

#include "kernels/program/program.h"
#include "kernels/program/scalar_math.h"

namespace vitrine::kernels::scalar {

template <class T, class Use> void useComparison(ProgramOp op, const Use& use) {
    switch (op) {
    case ProgramOp::Lt:
        return use([](T x, T y) { return x < y; });
    case ProgramOp::Le:
        return use([](T x, T y) { return x <= y; });
    case ProgramOp::Eq:
        return use([](T x, T y) { return x == y; });
    default:
        return use([](T x, T y) { return x != y; });
    }
}

/// And, Or, Xor, shifts.
template <class I, class Use> bool useBits(ProgramOp op, const Use& use) {
    switch (op) {
    case ProgramOp::And:
        use([](I x, I y) { return static_cast<I>(x & y); });
        return true;
    case ProgramOp::Or:
        use([](I x, I y) { return static_cast<I>(x | y); });
        return true;
    case ProgramOp::Xor:
        use([](I x, I y) { return static_cast<I>(x ^ y); });
        return true;
    case ProgramOp::ShiftLeft:
        use([](I x, I y) { return shiftLeft(x, y); });
        return true;
    case ProgramOp::ShiftRight:
        use([](I x, I y) { return shiftRight(x, y); });
        return true;
    default:
        return false;
    }
}

/// Of two integers or two floats.
template <class T, class Use> bool useBinary(ProgramOp op, const Use& use) {
    switch (op) {
    case ProgramOp::Add:
        use([](T x, T y) { return add(x, y); });
        return true;
    case ProgramOp::Sub:
        use([](T x, T y) { return sub(x, y); });
        return true;
    case ProgramOp::Mul:
        use([](T x, T y) { return mul(x, y); });
        return true;
    case ProgramOp::FloorDiv:
        use([](T x, T y) { return floorDiv(x, y); });
        return true;
    case ProgramOp::Mod:
        use([](T x, T y) { return mod(x, y); });
        return true;
    case ProgramOp::Min:
        use([](T x, T y) { return minimum(x, y); });
        return true;
    case ProgramOp::Max:
        use([](T x, T y) { return maximum(x, y); });
        return true;
    case ProgramOp::Pow:
        use([](T x, T y) { return power(x, y); });
        return true;
    default:
        break;
    }
    if constexpr (std::is_integral_v<T>) {
        return useBits<T>(op, use);
    } else if (op == ProgramOp::Div) {
        use([](T x, T y) { return x / y; });
        return true;
    } else if (op == ProgramOp::Atan2) {
        use([](T y, T x) { return std::atan2(y, x); });
        return true;
    } else {
        return false;
    }
}

/// Float functions.
template <class C, class Use> bool useFunction(ProgramOp op, const Use& use) {
    switch (op) {
    case ProgramOp::Exp:
        use([](C x) { return std::exp(x); });
        return true;
    case ProgramOp::Exp2:
        use([](C x) { return std::exp2(x); });
        return true;
    case ProgramOp::Expm1:
        use([](C x) { return std::expm1(x); });
        return true;
    case ProgramOp::Log:
        use([](C x) { return std::log(x); });
        return true;
    case ProgramOp::Log2:
        use([](C x) { return std::log2(x); });
        return true;
    case ProgramOp::Log1p:
        use([](C x) { return std::log1p(x); });
        return true;
    case ProgramOp::Sqrt:
        use([](C x) { return std::sqrt(x); });
        return true;
    case ProgramOp::Rsqrt:
        use([](C x) { return C(1) / std::sqrt(x); });
        return true;
    case ProgramOp::Tanh:
        use([](C x) { return std::tanh(x); });
        return true;
    case ProgramOp::Sigmoid:
        use([](C x) { return sigmoid(x); });
        return true;
    case ProgramOp::Sin:
        use([](C x) { return std::sin(x); });
        return true;
    case ProgramOp::Cos:
        use([](C x) { return std::cos(x); });
        return true;
    case ProgramOp::Erf:
        use([](C x) { return std::erf(x); });
        return true;
    case ProgramOp::Floor:
        use([](C x) { return std::floor(x); });
        return true;
    case ProgramOp::Ceil:
        use([](C x) { return std::ceil(x); });
        return true;
    case ProgramOp::Round:
        use([](C x) { return std::nearbyint(x); });
        return true;
    case ProgramOp::Trunc:
        use([](C x) { return std::trunc(x); });
        return true;
    default:
        return false;
    }
}

/// Of one integer or one float.
template <class T, class Use> bool useUnary(ProgramOp op, const Use& use) {
    switch (op) {
    case ProgramOp::Neg:
        use([](T x) { return neg(x); });
        return true;
    case ProgramOp::Abs:
        use([](T x) { return absolute(x); });
        return true;
    case ProgramOp::Sign:
        use([](T x) { return sign(x); });
        return true;
    default:
        break;
    }
    if constexpr (std::is_floating_point_v<T>) {
        return useFunction<T>(op, use);
    } else if (op == ProgramOp::Not) {
        use([](T x) { return static_cast<T>(~x); });
        return true;
    } else {
        return false;
    }
}

} // namespace vitrine::kernels::scalar
