// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/bar_plot.h"

#include <algorithm>
#include <cmath>

namespace vitrine::ui {

namespace {

constexpr double kFacts = 90, kLabels = 120, kAir = 11, kTopAir = 8;

} // namespace

BarPlot::BarPlot(const QString& title, QWidget* parent) : ItemPlot(title, parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void BarPlot::setGroups(std::function<std::vector<BarGroup>(const ThemeTokens&)> make, int gutter,
                        const QString& factHead) {
    make_ = std::move(make);
    gutter_ = gutter;
    factHead_ = factHead;
    groups_ = make_ ? make_(themeTokens()) : std::vector<BarGroup>();
    forgetCurrentItem();
    setFixedHeight(sizeHint().height());
    updateGeometry();
    invalidate();
}

double BarPlot::top() const {
    double most = 0;
    for (const BarGroup& group : groups_) {
        for (const BarRow& row : group.rows) {
            most = std::max(most, row.value);
        }
    }
    return most > 0 ? most : 1;
}

double BarPlot::groupTop(std::size_t group) const {
    double y = factHead_.isEmpty() ? kTopAir : kTopAir + 6;
    for (std::size_t i = 0; i < group; ++i) {
        y += static_cast<double>(groups_[i].rows.size()) * (kBar + kGap) - kGap + kAir;
    }
    return y;
}

QSize BarPlot::sizeHint() const {
    return {400, static_cast<int>(groupTop(groups_.size())) + 4};
}

QRectF BarPlot::barRect(std::size_t group, std::size_t row, double width) const {
    const bool letters = std::any_of(groups_[group].rows.begin(), groups_[group].rows.end(),
                                     [](const BarRow& r) { return !r.letter.isNull(); });
    const double left = gutter_ + (letters ? 5 : 0);
    const double room = std::max(20.0, width - left - kLabels - kFacts);
    const double value = std::max(0.0, groups_[group].rows[row].value);
    const double length = value > 0 ? std::max(1.0, std::round(value / top() * room)) : 0;
    return {left, groupTop(group) + static_cast<double>(row) * (kBar + kGap), length, static_cast<double>(kBar)};
}

QImage BarPlot::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    QPainter painter(&image);
    const QFont axis = Theme::instance().font(TypeRole::Axis);
    const std::vector<BarGroup> groups = make_ ? make_(t) : std::vector<BarGroup>();
    if (!groups.empty()) {
        drawText(painter, QRectF(size.width() - kFacts - 12, 0, kFacts, 14), Qt::AlignRight | Qt::AlignVCenter,
                 factHead_, t.text3, axis);
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
        const BarGroup& group = groups[g];
        const double y = groupTop(g);
        const double height = static_cast<double>(group.rows.size()) * (kBar + kGap) - kGap;
        drawText(painter, QRectF(4, y, gutter_ - 12, height), Qt::AlignRight | Qt::AlignVCenter, group.name, t.text2,
                 axis);
        for (std::size_t r = 0; r < group.rows.size(); ++r) {
            const BarRow& row = group.rows[r];
            const QRectF bar = barRect(g, r, size.width());
            if (!row.letter.isNull()) {
                painter.fillRect(QRectF(gutter_, bar.top(), 3, bar.height()),
                                 row.letter == QLatin1Char('A') ? t.compareA : t.compareB);
            }
            if (row.outline) {
                QPen pen(t.text2, 1);
                pen.setDashPattern({4, 3});
                painter.setPen(pen);
                painter.setBrush(Qt::NoBrush);
                painter.drawRect(bar.adjusted(0.5, 0.5, -0.5, -0.5));
            } else {
                fillCategory(painter, bar, row.style, dpr);
            }
            drawText(painter, QRectF(bar.right() + 8, bar.top() - 2, size.width() - bar.right() - 8, kBar + 4),
                     Qt::AlignVCenter, row.text, t.text1, axis);
        }
        if (!group.fact.isEmpty()) {
            const QFont font = group.strong ? Theme::instance().font(TypeRole::Table, true) : axis;
            drawText(painter, QRectF(size.width() - kFacts - 12, y, kFacts, height), Qt::AlignRight | Qt::AlignVCenter,
                     group.fact, group.strong ? t.text1 : t.text3, font);
        }
    }
    return image;
}

QString BarPlot::itemText(int item) const {
    const BarGroup& group = groups_[static_cast<std::size_t>(item)];
    QStringList values;
    for (const BarRow& row : group.rows) {
        values << row.text;
    }
    return group.name + QStringLiteral(": ") + values.join(QStringLiteral(", "));
}

QString BarPlot::spoken() const {
    if (currentItem() >= 0) {
        return itemText(currentItem());
    }
    QStringList words;
    for (int group = 0; group < itemCount(); ++group) {
        words << itemText(group);
    }
    return words.join(QStringLiteral(". "));
}

int BarPlot::itemAt(QPointF position) const {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        if (position.y() >= groupTop(g) && position.y() < groupTop(g + 1)) {
            return static_cast<int>(g);
        }
    }
    return -1;
}

QRectF BarPlot::itemFrame(int item) const {
    if (!hasFocus()) {
        return {}; // under the pointer alone the bars speak for themselves
    }
    const auto g = static_cast<std::size_t>(item);
    return {2.5, groupTop(g) - 3.5, static_cast<double>(width() - 5), groupTop(g + 1) - groupTop(g) - kAir + 7};
}

} // namespace vitrine::ui
