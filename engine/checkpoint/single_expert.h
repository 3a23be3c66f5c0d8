// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>
#include <string>

namespace vitrine::engine {

/// What a name like "PREFIX.experts.7.up_proj.weight" says: a matrix of a stack of experts that is stored by itself.
struct SingleExpert {
    explicit SingleExpert(const std::string& name);

    std::string parameter;    ///< of the stack: "PREFIX.experts.gate_up_proj"
    std::int64_t expert = -1; ///< -1: the name is none of this kind
    bool up = false;          ///< the second half of the outputs of gate and up

    /// Its number among the matrices of its size that make up the stack: gate and up lie one after the other.
    std::int64_t place() const;
};

} // namespace vitrine::engine
