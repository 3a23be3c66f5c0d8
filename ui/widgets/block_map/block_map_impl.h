// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The state of a BlockMap; for the block_map_*.cpp files alone.

#include <QPoint>

#include "ui/models/common/latest_job.h"
#include "ui/widgets/block_map/block_map.h"
#include "ui/widgets/block_map/block_map_paint.h"

namespace vitrine::ui {

class BlockMap::Impl {
public:
    explicit Impl(BlockMap* map);
    ~Impl();
    Impl(const Impl&) = delete; // workers answer to it
    Impl& operator=(const Impl&) = delete;

    bool empty() const { return scene.map == nullptr; }
    /// After another mask, side, content, size or theme: asks for what is to be seen.
    void refresh();
    /// After the range changed: `refresh`, and reports it.
    void viewMoved();
    void relayout();
    void resetView();
    /// Places the parts of the widget; returns the view that shows all.
    MapView layOut(const MaskMap& map);

    TileScene makeScene(const MapView& seen) const;
    MapPicture picture() const;
    /// The same on another number of device pixels.
    MapPicture pictureAt(double dpr) const;
    void paintVectors(QPainter& painter) const;
    /// Crosshair and lens, the lens computed here if need be.
    void paintCursorNow(QPainter& painter, MapPicture& whole) const;
    /// Everything but focus frame and rubber band; what is missing is computed here and now.
    void paintComplete(QPainter& painter, double dpr, bool withCursor) const;
    void paintBase(QPainter& painter, const MapPicture& picture, const TileSource& tiles) const;
    void paintRubberBand(QPainter& painter) const;
    /// Rulers, map and what is below it, kept until something but the cursor changes.
    const QImage& base(double dpr);

    void setCell(std::optional<MaskCell> next, bool pin);
    std::optional<MaskCell> cellAt(QPointF position) const;
    std::optional<MaskCell> lensCellAt(QPointF position) const;
    bool lensPanelContains(QPointF position) const;
    void askLens();
    const LensAnswer* currentLens() const;
    void askDifference();
    void askCorner();
    void scrollToCell();
    MaskCell moved(MaskCell from, int key, bool fine) const;
    std::int64_t stepOf(const MapAxis& axis) const;
    void moveByKey(int key, Qt::KeyboardModifiers modifiers);
    void dragTo(QPointF position);
    QRectF rubberBand() const;
    void zoomToBand();

    enum class Drag : std::uint8_t { None, Map, KvRuler, QRuler, Box, KvRange, QRange };
    /// The map as it was before the zoom changed, shown until the new tiles are there.
    struct Backdrop {
        QImage image;
        MaskRange range;
    };

    BlockMap* owner;
    MaskMapPtr a, b;
    QString emptyText;
    MapLayout layout;
    MapView view;
    TileScene scene;
    BlockMapTiles tiles;

    std::optional<MaskCell> cell;
    qint64 blockRow = -1, blockColumn = -1;
    QPointF pressed, last; ///< of a drag

    LensQuestion asked;
    std::optional<LensAnswer> lens;
    std::optional<BlockCounts> difference;
    base::StopSource lensStop, differenceStop;
    LatestJob<LensAnswer> lensJob;
    LatestJob<BlockCounts> differenceJob;
    LatestJob<int> cornerJob;
    QImage baseImage;
    Backdrop backdrop;

    int lensCorner = 0;
    Side side = Side::A;
    Content content = Content::Mask;
    Drag drag = Drag::None;
    bool dragged = false; ///< farther than a click
    bool linked = true;
    bool settledSent = true; ///< tilesSettled was sent for what is in view
    bool pinned = false;
    bool baseDirty = true;

    void keepBackdrop();
};

} // namespace vitrine::ui
