// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rows of 24 px for inspectors: a name, perhaps a mark or a bar on one scale, and up to three values at the right. The
// pointer and the arrow keys choose a row; a click or Return on it is reported.

#include <optional>
#include <vector>

#include "ui/widgets/base/controls.h"
#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

enum class FactFill : std::uint8_t { Neutral, Full, Partial }; ///< colours of the block map

struct FactValue {
    QString text;
    TextColor color = TextColor::Text1;
};

struct FactRow {
    QString name;
    std::vector<FactValue> values;
    std::optional<bool> mark;    ///< a check in good or a cross in bad before the name
    std::optional<double> share; ///< a bar of this part of the longest one
    FactFill fill = FactFill::Neutral;
    bool mono = false, strong = false;
    bool muted = false; ///< the name in text2
    QString tip;        ///< whole words for the tool tip and assistive technology; empty: name and values
};

class FactRows final : public ItemPlot {
    Q_OBJECT

public:
    static constexpr int kRow = 24;

    explicit FactRows(const QString& title, QWidget* parent = nullptr);
    /// Columns of the values from left to right have these widths or more; values without one take the room of their
    /// text.
    void setRows(std::vector<FactRow> rows, std::vector<int> widths, int nameWidth = 0);
    const std::vector<FactRow>& rows() const { return rows_; }
    void setRowHeight(int pixels);
    QString asText() const; ///< lines "name: value value"

    QImage picture(const QSizeF& size, double dpr) const override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {160, sizeHint().height()}; }

protected:
    int itemCount() const override { return static_cast<int>(rows_.size()); }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;
    bool event(QEvent* event) override;

private:
    /// As asked, or what the widest text needs beside its neighbour.
    std::vector<double> columnWidths() const;
    void paintRow(QPainter& painter, const FactRow& row, const QRectF& rect, const std::vector<double>& widths,
                  double dpr) const;
    std::vector<FactRow> rows_;
    int rowHeight_ = kRow;
    std::vector<int> widths_;
    int nameWidth_ = 0; ///< where bars begin; 0: after the name
};

} // namespace vitrine::ui
