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

class BudgetBar final : public QWidget {
    Q_OBJECT

public:
    /// 34 px with words above and braces below; small: 6 px and nothing else, or taller with
    /// hatches and the names that have room.
    explicit BudgetBar(bool small, QWidget* parent = nullptr);

    /// `asked` 0: nothing failed. `band` is the part by which the sum may be wrong, drawn as a hatch at its end.
    void set(std::vector<BudgetShare> parts, std::uint64_t budget, std::uint64_t asked, const QString& askedName,
             double band = 0);
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
    double band_ = 0;
};

} // namespace vitrine::ui
