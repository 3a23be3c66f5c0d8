// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Makes programs from nodes of other programs.

#include <span>
#include <vector>

#include "kernels/program/program_builder.h"

namespace vitrine::kernels {

/// The nodes that `roots` need, in a builder: their values by node, -1 for the others.
std::vector<ProgramBuilder::Value> copyNodes(ProgramBuilder& builder, const Program& program,
                                             std::span<const std::int32_t> roots,
                                             std::span<const ProgramBuilder::Substitution> inputs = {});

/// `program` with the capture list of the program that it was made from, so that one binding serves both.
Program withCapturesOf(Program program, const Program& origin);

} // namespace vitrine::kernels
