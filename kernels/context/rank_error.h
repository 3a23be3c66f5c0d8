// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The error of one rank of several, said so that one sees which rank it was.

#include <exception>
#include <string_view>

namespace vitrine::kernels {

/// `error` with "rank N, PLACE: " before its sentence, and of the same kind; errors that are not base::Error become
/// Internal. Cancelled and RankAborted stay as they are. `place` may be empty.
std::exception_ptr errorOfRank(const std::exception_ptr& error, int rank, std::string_view place);

/// Whether the error only says that another rank has failed.
bool isRankAborted(const std::exception_ptr& error);

} // namespace vitrine::kernels
