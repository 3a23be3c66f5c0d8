// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/program_fold.h"

#include <cmath>

#include "base/error.h"
#include "kernels/program/builder_state.h"
#include "kernels/program/scalar_ops.h"

namespace vitrine::kernels {

namespace {

template <class T> bool compare(ProgramOp op, T a, T b) {
    bool result = false;
    scalar::useComparison<T>(op, [&](const auto& holds) { result = holds(a, b); });
    return result;
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

[[noreturn]] void noForm(ProgramOp op, bool integers) {
    throw base::BadInput(
        integers ? "'" + std::string(programOpName(op)) + "' does not take integers; convert them with float()"
                 : "operations on bits need booleans or integers, not floats; put comparisons in parentheses");
}

template <class T> T foldBinary(ProgramOp op, T a, T b) {
    T result = 0;
    if (!scalar::useBinary<T>(op, [&](const auto& function) { result = function(a, b); })) {
        noForm(op, std::is_integral_v<T>);
    }
    return result;
}

template <class T> T foldOne(ProgramOp op, T a) {
    T result = 0;
    if (!scalar::useUnary<T>(op, [&](const auto& function) { result = function(a); })) {
        noForm(op, std::is_integral_v<T>);
    }
    return result;
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
    if (floats || op == ProgramOp::Div || op == ProgramOp::Atan2) {
        return floatConstant(foldBinary(op, left.number(), right.number()));
    }
    return pythonIntegers(op, left.integer, right.integer);
}

ProgramConstant foldTyped(ProgramOp op, const ProgramConstant& left, const ProgramConstant& right) {
    switch (left.type) {
    case ProgramType::Float:
        return isComparison(op) ? boolConstant(compare(op, left.real, right.real))
                                : floatConstant(foldBinary(op, left.real, right.real));
    case ProgramType::Int32:
        return isComparison(op)
                   ? boolConstant(compare(op, left.integer, right.integer))
                   : intConstant(ProgramType::Int32, foldBinary(op, static_cast<std::int32_t>(left.integer),
                                                                static_cast<std::int32_t>(right.integer)));
    case ProgramType::Int64:
        return isComparison(op) ? boolConstant(compare(op, left.integer, right.integer))
                                : intConstant(ProgramType::Int64, foldBinary(op, left.integer, right.integer));
    case ProgramType::Bool:
        break;
    }
    return boolConstant(foldBinary(op, left.integer, right.integer) != 0);
}

ProgramConstant foldUnary(ProgramOp op, const ProgramConstant& value) {
    switch (value.type) {
    case ProgramType::Float:
        return floatConstant(foldOne(op, value.real));
    case ProgramType::Int32:
        return intConstant(value.type, foldOne(op, static_cast<std::int32_t>(value.integer)));
    case ProgramType::Int64:
        return intConstant(value.type, foldOne(op, value.integer));
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
