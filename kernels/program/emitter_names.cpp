// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/emitter_names.h"

namespace vitrine::kernels {

std::string_view emittedType(ProgramType type) {
    switch (type) {
    case ProgramType::Bool:
        return "bool";
    case ProgramType::Int32:
        return "int";
    case ProgramType::Int64:
        return "long long";
    case ProgramType::Float:
        return "float";
    }
    return "";
}

std::string_view emittedFunction(ProgramOp op) {
    switch (op) {
    case ProgramOp::Add:
        return "add";
    case ProgramOp::Sub:
        return "sub";
    case ProgramOp::Mul:
        return "mul";
    case ProgramOp::FloorDiv:
        return "floorDiv";
    case ProgramOp::Mod:
        return "floorMod";
    case ProgramOp::Min:
        return "minimum";
    case ProgramOp::Max:
        return "maximum";
    case ProgramOp::ShiftLeft:
        return "shiftLeft";
    case ProgramOp::ShiftRight:
        return "shiftRight";
    default:
        return "";
    }
}

} // namespace vitrine::kernels
