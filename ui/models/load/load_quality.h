// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the weights of two or three loads cost in quality, as the Precision lab has found it. Pure functions; any
// thread.

#include <array>
#include <vector>

#include "sessions/session_file.h"
#include "ui/models/common/flat_tree.h"

namespace vitrine::ui {

/// The newest done load run beside A and B whose model is another one than theirs; 0: there is none.
sessions::RunId thirdLoad(const std::vector<sessions::RunInfo>& runs, sessions::RunId a, sessions::RunId b);

/// Resident bytes, load time, format, KL to BF16, top-1 agreement and perplexity of three loads, the last four as the
/// newest run of the lab says that knows one of the models. Reads long metrics: for a worker.
FlatTreePtr threeLoads(const std::vector<sessions::RunInfo>& runs, const std::array<sessions::RunId, 3>& loads);

/// Format, KL to BF16, top-1 agreement and perplexity of the models of two load runs, as the newest run of the lab that
/// knows both says. Null: none does, or both have the same weights. Reads long metrics: for a worker.
FlatTreePtr loadQuality(const std::vector<sessions::RunInfo>& runs, sessions::RunId a, sessions::RunId b);

} // namespace vitrine::ui
