// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <QString>

namespace vitrine::ui {

/// A view that says one line in the tool bar while it is shown. It emits View::availabilityChanged() when the line
/// changes.
class ToolNote {
public:
    virtual QString toolNote() const = 0; ///< empty: nothing to say

protected:
    ~ToolNote() = default; // nobody owns a view through this
};

} // namespace vitrine::ui
