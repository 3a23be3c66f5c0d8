// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A view that has no data of this session yet: it says what it shows and from which kind of run.

#include "ui/widgets/base/view.h"

namespace vitrine::ui {

class OutlookView final : public View {
    Q_OBJECT

public:
    OutlookView(const QString& id, const QString& title, const QString& words, const ViewServices& context,
                QWidget* parent = nullptr);
};

} // namespace vitrine::ui
