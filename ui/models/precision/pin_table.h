// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A matrix and one of its groups that stay in view beside the ones that are looked at. Immutable; any thread.

#include <QString>
#include <memory>

#include "ui/models/common/flat_tree.h"
#include "ui/models/precision/precision_data.h"

namespace vitrine::ui {

/// A matrix in a format, and a group of it.
struct LabPin {
    QString title;                                    ///< "Layer 46, down, expert 17"
    QString format;                                   ///< "INT4, g32"
    std::shared_ptr<const PrecisionTensor> tensor;    ///< null: there is no pin
    std::shared_ptr<const engine::GroupDetail> group; ///< null: none was looked at

    friend bool operator==(const LabPin&, const LabPin&) = default;
};

/// Figures of both, those of `shown` first. REQUIRES a pinned tensor; `shown` may be without one while it is read.
FlatTreePtr pinTable(const LabPin& shown, const LabPin& pinned);

} // namespace vitrine::ui
