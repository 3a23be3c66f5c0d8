// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The block mask of one packed sequence as a small picture: queries down, keys across, a cell each block.

#include "ui/models/finetune/mask_picture.h"
#include "ui/widgets/plots/item_plot.h"
#include "ui/widgets/plots/pack_strip.h"

namespace vitrine::ui {

class MaskPixels final : public ItemPlot {
    Q_OBJECT

public:
    explicit MaskPixels(const QString& title, QWidget* parent = nullptr);
    /// `rows` name the triangles; positions of a sequence of `length`.
    void setMask(MaskPicture mask, std::vector<PackedRow> rows, std::int64_t length);
    void setChosen(int row);
    void setSide(int pixels);
    const MaskPicture& mask() const { return mask_; }

    QImage picture(const QSizeF& size, double dpr) const override;
    QSize sizeHint() const override { return {side_ + 2, side_ + 2}; }

protected:
    int itemCount() const override { return static_cast<int>(rows_.size()); }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;
    int itemBeside(int item, int key) const override;
    void paintOver(QPainter& painter) override;

private:
    QRectF triangle(int row) const;

    MaskPicture mask_;
    std::vector<PackedRow> rows_;
    std::int64_t length_ = 1;
    int chosen_ = -1, side_ = 256;
};

/// How many blocks of a mask are full, partial and empty, and what that saves.
class MaskCounts final : public QWidget {
    Q_OBJECT

public:
    explicit MaskCounts(QWidget* parent = nullptr);
    void setMask(const MaskPicture& mask);
    QString asText() const;
    QSize sizeHint() const override { return {258, 124}; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QString comparison() const;

    MaskPicture mask_;
};

} // namespace vitrine::ui
