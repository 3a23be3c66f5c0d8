// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The Planner's sentences and tables. Pure functions.

#include <QString>
#include <cstdint>
#include <string>

#include "engine/workload/planner/what_if.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/planner/past_plans.h"

namespace vitrine::ui {

enum class PlanVerdict : std::uint8_t { Fits, Tight, DoesNotFit };
PlanVerdict planVerdict(const engine::PlanPrice& price, const ErrorBand& band);

/// "Fits with 12.40 GiB to spare; the longest context is 760,960."
QString verdictText(const engine::WhatIfSet& set, const ErrorBand& band);
/// What the error band makes of it, with its number.
QString verdictReason(const engine::WhatIfSet& set, const ErrorBand& band);

/// "+ tiled MLP" in the words of the window; of types of the KV cache "KV cache in int8".
QString setName(const engine::PlanSetSpec& spec);
QString switchName(const engine::PlanSwitchSpec& spec);
/// "Tiled MLP", "Context 589,568", two of them with "and".
QString changeName(const engine::PlanChange& change, const engine::Experiment& experiment);
/// What a change of one option does: "a byte for each element and a scale for each head". Empty of others.
QString changeEffect(const engine::PlanChange& change);
/// What the change does or where the peak then is, or "not enough alone".
QString changeReason(const engine::PlanChange& change);
/// "+1.2 %" of the step's time; unknown where a time is.
QString stepChangeText(double seconds, double before);

/// "backward layer 23", or a dash where it is not known.
QString planPlaceText(const std::string& place);
/// "760,960", or a dash while it is not known.
QString longestText(const engine::WhatIfSet& set);

/// "set 4: 21.03 GiB over", and which device has the room; both empty where nothing is known.
QString goalFacts(const engine::WhatIf& answer);
QString goalText(const engine::WhatIf& answer, const engine::Experiment& experiment);

/// "from the data sheet", "measured on this machine": what the plan's times are from.
QString timesFromText(const std::string& from);

FlatTreePtr planSetTable(const engine::WhatIf& answer);
FlatTreePtr planFactTable(const engine::WhatIf& answer, const ErrorBand& band);
FlatTreePtr planSlopeTable(const engine::WhatIf& answer);
/// Sets by contexts, at every tenth of the axis: what "Show as table" gives.
FlatTreePtr planContextTable(const engine::WhatIf& answer, std::int64_t axisTop);

/// A table as CSV with raw values, quoted where a value needs it.
QString asCommaSeparated(const FlatTree& table);

/// The next round number above the longest limit and the context itself.
std::int64_t contextAxisTop(const engine::WhatIf& answer);

} // namespace vitrine::ui
