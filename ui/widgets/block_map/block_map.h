// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The Mask Lab's map: a mask as full, partial and empty blocks from millions of tokens to single elements, with rulers,
// crosshair, lens, legend, strips of captured tensors and the load of each block column. Pictures are made in tiles on
// worker threads; painting only copies what is there. GUI thread only.
//
// Wheel zooms at the pointer, drag pans, Shift and drag zooms to a box; on a ruler the same for that axis. Arrows move
// the cell by what can be distinguished, an element or a block (Ctrl: by one element; Shift: the range instead), + and
// - zoom, Home shows all, Enter pins the cell, Escape lets it go.

#include <memory>
#include <optional>

#include "ui/models/mask_lab/mask_map.h"
#include "ui/widgets/base/plot_widget.h"

namespace vitrine::ui {

struct MaskCell {
    std::int64_t q = 0, kv = 0;
    friend bool operator==(const MaskCell&, const MaskCell&) = default;
};

/// Positions, possibly fractions and outside the mask where the map is larger than it.
struct MaskRange {
    double q0 = 0, q1 = 0, kv0 = 0, kv1 = 0;
    friend bool operator==(const MaskRange&, const MaskRange&) = default;
};

class BlockMap final : public PlotWidget {
    Q_OBJECT

public:
    enum class Side : std::uint8_t { A, B, Difference };
    enum class Content : std::uint8_t { Mask, Score };

    explicit BlockMap(QWidget* parent = nullptr);
    ~BlockMap() override;

    /// Either may be null. The range is kept while the lengths stay, else all is shown.
    void setMaps(MaskMapPtr a, MaskMapPtr b);
    /// Difference needs A and B of the same lengths and block sizes; the map says so when they are not.
    void setSide(Side side);
    void setContent(Content content);
    Side side() const;
    Content content() const;
    /// The map that the side names (A for the difference), null when there is none.
    MaskMapPtr shownMap() const;
    /// What is said where there is no map: "Write a program, or choose one from the catalogue."
    void setEmptyText(const QString& text);

    /// Rows and columns have one scale, and rulers move both ranges.
    void setLinked(bool linked);
    bool linked() const;

    MaskRange visible() const;
    void showAll();
    void showRange(const MaskRange& range);
    /// Around the middle, or around the cell where there is one.
    void zoomBy(double factor);
    double pixelsPerToken() const; ///< logical, along keys

    /// The cell of the crosshair: under the pointer, moved by the keyboard, or pinned.
    std::optional<MaskCell> cell() const;
    bool pinned() const;
    /// Moves the crosshair there and scrolls to it; pins it when asked.
    void goTo(MaskCell cell, bool pin);
    void unpin();

    /// Nothing that is visible waits for a tile.
    bool settled() const;

    /// The map as seen with rulers, legend and strips, without the focus frame. Missing tiles are computed here.
    QImage picture(double scale) const;
    /// The same as vectors (element tiles as images). Throws base::Error when the file cannot be written.
    void saveSvg(const QString& path) const;
    void savePng(const QString& path, double scale) const;
    QByteArray svg() const;

    QString spoken() const override;
    QSize minimumSizeHint() const override { return {320, 300}; }
    QSize sizeHint() const override { return {688, 777}; }

signals:
    void cellChanged();                           ///< see cell(); also when the pointer left
    void blockChanged(qint64 row, qint64 column); ///< block under the cell; -1, -1: none
    void cellPinned(qint64 q, qint64 kv);
    void cellReleased();
    void visibleChanged();
    void zoomChanged(double pixelsPerToken);
    void tilesSettled();

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace vitrine::ui
