// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The commands about the axis of time that all views share: zooming and panning, the measured range, filters, and marks
// that are kept as notes of run A.

#include <functional>
#include <optional>

#include "ui/widgets/base/view.h"

namespace vitrine::ui {

class WindowDocks;

class TimeCommands final {
public:
    /// Everything outlives the commands.
    TimeCommands(const ViewServices& context, WindowDocks* docks);

    bool perform(const QString& action); ///< false: not one of these commands
    /// What a note would be about: the mark, else the measured range, else the cursor.
    std::optional<TimeRange> marked() const;

private:
    base::TimeNs zoomCentre() const;
    void filterMeasured();
    void setMark();
    void keepMark();
    void removeMark();

    TimeCursor* time_;
    WindowDocks* docks_;
};

} // namespace vitrine::ui
