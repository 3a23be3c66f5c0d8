// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Numbered changes of the session format. Migration n brings a file of version n-1 to version n.

#include <cstdint>
#include <span>
#include <string_view>

#include "sessions/sqlite/database.h"

namespace vitrine::sessions {

/// "VTRN" in the file's application_id.
inline constexpr std::uint32_t kApplicationId = 0x5654524E;

struct Migration {
    std::int64_t version = 0;
    std::string_view sql;
};

/// All of them, by version, from 1.
std::span<const Migration> migrations();

/// What this program writes: the version of the last migration.
std::int64_t formatVersion();

/// The oldest version that can be read without bringing it forward: it has no table of a later one, and what these hold
/// is empty.
inline constexpr std::int64_t kOldestReadable = 1;

/// Applies what is missing, in one transaction; safe when two processes do it at once.
void migrate(const Database& database, std::span<const Migration> steps);

} // namespace vitrine::sessions
