// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Constant folding of programs: Python's rules for numbers that no tensor has touched, PyTorch's for typed ones.

#include <cstdint>

#include "kernels/program/program.h"

namespace vitrine::kernels {

/// A number; `integer` of Bool and Int types, `real` of Float.
struct ProgramConstant {
    ProgramType type = ProgramType::Int64;
    std::int64_t integer = 0;
    double real = 0;

    double number() const { return type == ProgramType::Float ? real : static_cast<double>(integer); }
};

ProgramConstant boolConstant(bool value);
ProgramConstant intConstant(ProgramType type, std::int64_t value);
ProgramConstant floatConstant(double value);

/// Python's result for two Python numbers (Bool counts as an integer in arithmetic). Throws BadInput for a division by
/// zero, a negative shift, an integer above 64 bits, bits of floats.
ProgramConstant foldPython(ProgramOp op, const ProgramConstant& left, const ProgramConstant& right);
/// Both of one type (not Bool but for And, Or, Xor), as the interpreter computes.
ProgramConstant foldTyped(ProgramOp op, const ProgramConstant& left, const ProgramConstant& right);
/// Of the constant's own type; Float for what needs it.
ProgramConstant foldUnary(ProgramOp op, const ProgramConstant& value);
ProgramConstant foldCast(ProgramType type, const ProgramConstant& value);

} // namespace vitrine::kernels
