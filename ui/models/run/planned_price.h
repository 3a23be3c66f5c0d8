// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What an experiment would take, with the nearest change where it does not fit. The search makes many plans, so it runs
// on a worker thread.

#include <QString>
#include <string>

#include "engine/workload/sweep/run_queue.h"

namespace vitrine::ui {

/// `plan`: the same experiment as a plan of the machine that will run it, as RunController::asPlan() gives. Without a
/// price its `error` says why.
engine::QueuePrice plannedPrice(const std::string& experiment, const std::string& plan);

/// "nearest change: rank 4, 7.1 GiB, +0.4 % time", or that there is none; of a price that does not fit.
QString nearestText(const engine::QueuePrice& price);

} // namespace vitrine::ui
