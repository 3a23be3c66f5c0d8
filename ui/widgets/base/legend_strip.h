// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A row of 24 px that says what the colours and lines of a plot mean.

#include <QWidget>
#include <functional>
#include <vector>

#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

struct LegendItem {
    enum class Mark : std::uint8_t { Swatch, Dot, Line, Dashes, BadgeA, BadgeB, BadgeC };
    QString name;
    Mark mark = Mark::Swatch;
    std::function<CategoryStyle(const ThemeTokens&)> style; ///< of a swatch
};

class LegendStrip final : public QWidget {
    Q_OBJECT

public:
    explicit LegendStrip(QWidget* parent);
    /// `facts` stands at the right in text3 where there is room.
    void setItems(std::vector<LegendItem> items, const QString& facts = {});
    const std::vector<LegendItem>& items() const { return items_; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    std::vector<LegendItem> items_;
    QString facts_;
};

} // namespace vitrine::ui
