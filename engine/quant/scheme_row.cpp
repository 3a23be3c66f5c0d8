// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/scheme_row.h"

#include <fmt/format.h>

#include "base/error.h"

namespace vitrine::engine {

void failPacking(const std::string& weight, const std::string& what) {
    throw base::Unsupported(fmt::format("{}: {}", weight, what));
}

} // namespace vitrine::engine
