// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A bar of bytes by part against a budget, with what was asked for and did not fit.

#include <QWidget>
#include <vector>

#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

struct BudgetShare {
    QString name;
    std::uint64_t bytes = 0;
    CategoryStyle style;
};

/// The parts side by side over the width of `bar`, which stands for `scale` bytes, each with its name and bytes where
/// it has the room; a part without a name has no words. `unit`: "12.40 GiB", else "12.40".
void drawBudgetShares(QPainter& painter, const QRectF& bar, const std::vector<BudgetShare>& parts, double scale,
                      bool unit = true);

/// A brace from x0 to x1 with words under it that end before `limit`. They begin after `free`, which becomes where
/// those of the next may begin.
void drawBudgetBrace(QPainter& painter, double x0, double x1, double y, const QString& text, const QColor& color,
                     double limit, double& free);

class BudgetBar final : public QWidget {
    Q_OBJECT

public:
    /// 34 px with words above and braces below; small: 6 px and nothing else, or taller with
    /// hatches and the names that have room.
    explicit BudgetBar(bool small, QWidget* parent = nullptr);

    /// `asked` 0: nothing failed.
    void set(std::vector<BudgetShare> parts, std::uint64_t budget, std::uint64_t asked, const QString& askedName);
    QSize sizeHint() const override;
    QString spoken() const { return spoken_; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void paintSmall(QPainter& painter) const;
    void drawBraces(QPainter& painter, double heldX, double budgetX, double neededX) const;
    bool small_;
    std::vector<BudgetShare> parts_;
    std::uint64_t budget_ = 0, asked_ = 0, held_ = 0;
    QString askedName_, spoken_;
};

} // namespace vitrine::ui
