// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The kinds of contexts.

#include <cstdint>
#include <string_view>

namespace vitrine::kernels {

enum class Backend : std::uint8_t { Cpu, Meta, Cuda };
std::string_view backendName(Backend backend);

} // namespace vitrine::kernels
