// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <fmt/format.h>

#include "engine/language/source.h"

namespace vitrine::engine {

ModError::ModError(ModPlace place, std::string what, std::string excerpt)
    : base::BadInput(fmt::format("{}:{}:{}: {}", place.file, place.line, place.column, what)), place_(std::move(place)),
      what_(std::move(what)), excerpt_(std::move(excerpt)) {}

} // namespace vitrine::engine
