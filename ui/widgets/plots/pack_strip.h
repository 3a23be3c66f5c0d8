// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Packed sequences as strips: one sequence with its rows, the tokens that are trained and the padding; all sequences as
// columns; a row with its turns. Trained is solid, not trained a hatch, padding a dashed frame.

#include <vector>

#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

/// [begin, end) of positions.
struct StripSpan {
    std::int64_t begin = 0, end = 0;
};

struct PackedRow {
    QString name; ///< number of its line
    StripSpan span;
    std::vector<StripSpan> trained;
    bool cut = false;
};

/// A sequence under a ruler of positions. The chosen row has a frame, and its name in the ruler.
class PackStrip final : public ItemPlot {
    Q_OBJECT

public:
    explicit PackStrip(const QString& title, QWidget* parent = nullptr);
    void setRows(std::vector<PackedRow> rows, std::int64_t length);
    void setChosen(int row);
    int chosen() const { return chosen_; }
    const std::vector<PackedRow>& rows() const { return rows_; }
    /// Marks the position that the pointer of another plot shows; -1: none.
    void setMarked(std::int64_t position);

    QImage picture(const QSizeF& size, double dpr) const override;
    QSize sizeHint() const override;

signals:
    void positionHovered(qint64 position); ///< -1: none

protected:
    int itemCount() const override { return static_cast<int>(rows_.size()); }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;
    int itemBeside(int item, int key) const override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void paintOver(QPainter& painter) override;

private:
    double xOf(std::int64_t position, double width) const;
    void paintRuler(QPainter& painter, double width) const;
    void paintRows(QPainter& painter, double width, double dpr) const;

    std::vector<PackedRow> rows_;
    std::int64_t length_ = 1, marked_ = -1;
    int chosen_ = -1;
};

struct SequenceColumn {
    std::int32_t tokens = 0, trained = 0;
    bool cut = false;
};

/// All sequences, a column each, down to one a pixel; then a column shows the sequence with the most padding.
class SequenceBars final : public ItemPlot {
    Q_OBJECT

public:
    explicit SequenceBars(const QString& title, QWidget* parent = nullptr);
    void setSequences(std::vector<SequenceColumn> sequences, std::int64_t length);
    void setChosen(int sequence);

    QImage picture(const QSizeF& size, double dpr) const override;
    QSize sizeHint() const override { return {400, 52}; }

protected:
    int itemCount() const override { return static_cast<int>(sequences_.size()); }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;
    int itemBeside(int item, int key) const override;
    void paintOver(QPainter& painter) override;

private:
    StripSpan columnsOf(int sequence, double width) const; ///< in logical pixels

    std::vector<SequenceColumn> sequences_;
    std::int64_t length_ = 1;
    int chosen_ = -1;
};

struct TurnPart {
    QString name; ///< "user 432"
    StripSpan span;
    StripSpan trained; ///< empty: nothing of it is trained
};

/// The turns of a row, with a frame around what is in view below.
class TurnStrip final : public ItemPlot {
    Q_OBJECT

public:
    explicit TurnStrip(const QString& title, QWidget* parent = nullptr);
    void setTurns(std::vector<TurnPart> turns, std::int64_t length);
    void setInView(StripSpan span);

    QImage picture(const QSizeF& size, double dpr) const override;
    QSize sizeHint() const override { return {300, 28}; }

protected:
    int itemCount() const override { return static_cast<int>(turns_.size()); }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override { return turns_[static_cast<std::size_t>(item)].name; }
    QRectF itemFrame(int item) const override;
    int itemBeside(int item, int key) const override;
    void paintOver(QPainter& painter) override;

private:
    double xOf(std::int64_t position, double width) const;

    std::vector<TurnPart> turns_;
    std::int64_t length_ = 1;
    StripSpan inView_;
};

/// What the marks mean, 22 px high.
class PackLegend final : public QWidget {
    Q_OBJECT

public:
    enum class Of : std::uint8_t { Sequence, Tokens };
    explicit PackLegend(Of of, QWidget* parent = nullptr);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Of of_;
};

} // namespace vitrine::ui
