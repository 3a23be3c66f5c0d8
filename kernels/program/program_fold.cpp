// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/program_fold.h"

#include <cmath>

#include "base/error.h"
#include "kernels/program/scalar_math.h"

namespace vitrine::kernels {

namespace {

bool isComparison(ProgramOp op) {
    return op == ProgramOp::Lt || op == ProgramOp::Le || op == ProgramOp::Eq || op == ProgramOp::Ne;
}

template <class T> bool compare(ProgramOp op, T a, T b) {
    switch (op) {
    case ProgramOp::Lt:
        return a < b;
    case ProgramOp::Le:
        return a <= b;
    case ProgramOp::Eq:
        return a == b;
    default:
        return a != b;
    }
}

[[noreturn]] void tooLarge() {
    throw base::BadInput("an integer constant does not fit 64 bits; use a float");
}

std::int64_t pythonPower(std::int64_t base, std::int64_t exponent) {
    std::int64_t result = 1;
    for (std::int64_t i = 0; i < exponent; ++i) {
        if (base == 0 || base == 1) {
            return base;
        }
        if (base == -1) {
            return exponent % 2 == 0 ? 1 : -1;
        }
        if (__builtin_mul_overflow(result, base, &result)) {
            tooLarge();
        }
    }
    return result;
}

std::int64_t pythonShift(ProgramOp op, std::int64_t a, std::int64_t by) {
    if (by < 0) {
        throw base::BadInput("negative shift count; shift by 0 or more");
    }
    if (op == ProgramOp::ShiftRight) {
        return scalar::shiftRight(a, by);
    }
    const std::int64_t result = scalar::shiftLeft(a, by);
    if (a != 0 && (by > 62 || scalar::shiftRight(result, by) != a)) {
        tooLarge();
    }
    return result;
}

ProgramConstant pythonIntegers(ProgramOp op, std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    switch (op) {
    case ProgramOp::Add:
        if (__builtin_add_overflow(a, b, &result)) {
            tooLarge();
        }
        break;
    case ProgramOp::Sub:
        if (__builtin_sub_overflow(a, b, &result)) {
            tooLarge();
        }
        break;
    case ProgramOp::Mul:
        if (__builtin_mul_overflow(a, b, &result)) {
            tooLarge();
        }
        break;
    case ProgramOp::FloorDiv:
        result = scalar::floorDiv(a, b);
        break;
    case ProgramOp::Mod:
        result = scalar::mod(a, b);
        break;
    case ProgramOp::Pow:
        if (b < 0) {
            return floatConstant(std::pow(static_cast<double>(a), static_cast<double>(b)));
        }
        result = pythonPower(a, b);
        break;
    case ProgramOp::ShiftLeft:
    case ProgramOp::ShiftRight:
        result = pythonShift(op, a, b);
        break;
    default:
        return foldTyped(op, intConstant(ProgramType::Int64, a), intConstant(ProgramType::Int64, b));
    }
    return intConstant(ProgramType::Int64, result);
}

template <class I> std::int64_t foldIntegers(ProgramOp op, I a, I b) {
    switch (op) {
    case ProgramOp::Add:
        return scalar::add(a, b);
    case ProgramOp::Sub:
        return scalar::sub(a, b);
    case ProgramOp::Mul:
        return scalar::mul(a, b);
    case ProgramOp::FloorDiv:
        return scalar::floorDiv(a, b);
    case ProgramOp::Mod:
        return scalar::mod(a, b);
    case ProgramOp::Min:
        return scalar::minimum(a, b);
    case ProgramOp::Max:
        return scalar::maximum(a, b);
    case ProgramOp::Pow:
        return scalar::power(a, b);
    case ProgramOp::And:
        return a & b;
    case ProgramOp::Or:
        return a | b;
    case ProgramOp::Xor:
        return a ^ b;
    case ProgramOp::ShiftLeft:
        return scalar::shiftLeft(a, b);
    case ProgramOp::ShiftRight:
        return scalar::shiftRight(a, b);
    default:
        throw base::Internal("program: no integer form of " + std::string(programOpName(op)));
    }
}

double foldFloats(ProgramOp op, double a, double b) {
    switch (op) {
    case ProgramOp::Add:
        return a + b;
    case ProgramOp::Sub:
        return a - b;
    case ProgramOp::Mul:
        return a * b;
    case ProgramOp::Div:
        return a / b;
    case ProgramOp::FloorDiv:
        return scalar::floorDiv(a, b);
    case ProgramOp::Mod:
        return scalar::mod(a, b);
    case ProgramOp::Min:
        return scalar::minimum(a, b);
    case ProgramOp::Max:
        return scalar::maximum(a, b);
    case ProgramOp::Pow:
        return std::pow(a, b);
    default:
        throw base::Internal("program: no float form of " + std::string(programOpName(op)));
    }
}

double foldFunction(ProgramOp op, double x) {
    switch (op) {
    case ProgramOp::Exp:
        return std::exp(x);
    case ProgramOp::Exp2:
        return std::exp2(x);
    case ProgramOp::Expm1:
        return std::expm1(x);
    case ProgramOp::Log:
        return std::log(x);
    case ProgramOp::Log2:
        return std::log2(x);
    case ProgramOp::Log1p:
        return std::log1p(x);
    case ProgramOp::Sqrt:
        return std::sqrt(x);
    case ProgramOp::Rsqrt:
        return 1 / std::sqrt(x);
    case ProgramOp::Tanh:
        return std::tanh(x);
    case ProgramOp::Sigmoid:
        return scalar::sigmoid(x);
    case ProgramOp::Sin:
        return std::sin(x);
    case ProgramOp::Cos:
        return std::cos(x);
    case ProgramOp::Erf:
        return std::erf(x);
    case ProgramOp::Floor:
        return std::floor(x);
    case ProgramOp::Ceil:
        return std::ceil(x);
    case ProgramOp::Round:
        return std::nearbyint(x);
    case ProgramOp::Trunc:
        return std::trunc(x);
    case ProgramOp::Neg:
        return -x;
    case ProgramOp::Abs:
        return std::fabs(x);
    case ProgramOp::Sign:
        return scalar::sign(x);
    default:
        throw base::Internal("program: no function " + std::string(programOpName(op)));
    }
}

template <class I> std::int64_t foldIntegerUnary(ProgramOp op, I a) {
    switch (op) {
    case ProgramOp::Neg:
        return scalar::neg(a);
    case ProgramOp::Abs:
        return scalar::absolute(a);
    case ProgramOp::Sign:
        return scalar::sign(a);
    default:
        return static_cast<I>(~a);
    }
}

} // namespace

ProgramConstant boolConstant(bool value) {
    return {ProgramType::Bool, value ? 1 : 0, 0};
}

ProgramConstant intConstant(ProgramType type, std::int64_t value) {
    return {type, value, 0};
}

ProgramConstant floatConstant(double value) {
    return {ProgramType::Float, 0, value};
}

ProgramConstant foldPython(ProgramOp op, const ProgramConstant& left, const ProgramConstant& right) {
    const bool floats = left.type == ProgramType::Float || right.type == ProgramType::Float;
    if (isComparison(op)) {
        return boolConstant(floats ? compare(op, left.number(), right.number())
                                   : compare(op, left.integer, right.integer));
    }
    if (op == ProgramOp::And || op == ProgramOp::Or || op == ProgramOp::Xor) {
        if (left.type == ProgramType::Bool && right.type == ProgramType::Bool) {
            return foldTyped(op, left, right);
        }
    }
    const bool divides = op == ProgramOp::Div || op == ProgramOp::FloorDiv || op == ProgramOp::Mod;
    if (divides && right.number() == 0) {
        throw base::BadInput("division by zero; change the divisor");
    }
    if (floats || op == ProgramOp::Div) {
        return floatConstant(foldFloats(op, left.number(), right.number()));
    }
    return pythonIntegers(op, left.integer, right.integer);
}

ProgramConstant foldTyped(ProgramOp op, const ProgramConstant& left, const ProgramConstant& right) {
    switch (left.type) {
    case ProgramType::Float:
        return isComparison(op) ? boolConstant(compare(op, left.real, right.real))
                                : floatConstant(foldFloats(op, left.real, right.real));
    case ProgramType::Int32:
        return isComparison(op)
                   ? boolConstant(compare(op, left.integer, right.integer))
                   : intConstant(ProgramType::Int32, foldIntegers(op, static_cast<std::int32_t>(left.integer),
                                                                  static_cast<std::int32_t>(right.integer)));
    case ProgramType::Int64:
        return isComparison(op) ? boolConstant(compare(op, left.integer, right.integer))
                                : intConstant(ProgramType::Int64, foldIntegers(op, left.integer, right.integer));
    case ProgramType::Bool:
        break;
    }
    return boolConstant(foldIntegers(op, left.integer, right.integer) != 0);
}

ProgramConstant foldUnary(ProgramOp op, const ProgramConstant& value) {
    switch (value.type) {
    case ProgramType::Float:
        return floatConstant(foldFunction(op, value.real));
    case ProgramType::Int32:
        return intConstant(value.type, foldIntegerUnary(op, static_cast<std::int32_t>(value.integer)));
    case ProgramType::Int64:
        return intConstant(value.type, foldIntegerUnary(op, value.integer));
    case ProgramType::Bool:
        break;
    }
    return boolConstant(value.integer == 0); // Not is the only one
}

ProgramConstant foldCast(ProgramType type, const ProgramConstant& value) {
    const bool fromFloat = value.type == ProgramType::Float;
    switch (type) {
    case ProgramType::Bool:
        return boolConstant(fromFloat ? value.real != 0 : value.integer != 0);
    case ProgramType::Int32:
        return intConstant(type, fromFloat ? scalar::truncated<std::int32_t>(value.real)
                                           : static_cast<std::int32_t>(value.integer));
    case ProgramType::Int64:
        return intConstant(type, fromFloat ? scalar::truncated<std::int64_t>(value.real) : value.integer);
    case ProgramType::Float:
        break;
    }
    return floatConstant(value.number());
}

} // namespace vitrine::kernels
