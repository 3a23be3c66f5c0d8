// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tiles of the map that are there, and workers that make the others: those in view first, nearest to the middle. A
// change of the scene (masks, zoom, colours) stops what is under way; tiles of the last few scenes stay, so that
// flipping between two masks shows them at once. GUI thread only.

#include <QObject>
#include <QThreadPool>
#include <list>
#include <map>
#include <vector>

#include "ui/widgets/block_map/block_map_tile.h"

namespace vitrine::ui {

struct TileId {
    std::int64_t x = 0, y = 0;
    friend auto operator<=>(const TileId&, const TileId&) = default;
};

class BlockMapTiles final : public QObject {
    Q_OBJECT

public:
    explicit BlockMapTiles(QObject* parent);
    ~BlockMapTiles() override;
    BlockMapTiles(const BlockMapTiles&) = delete; // workers answer to it
    BlockMapTiles& operator=(const BlockMapTiles&) = delete;

    /// Nothing is made for a scene without a map.
    void setScene(const TileScene& scene);
    const TileScene& scene() const { return scene_; }

    /// What is in view, the most wanted first; what waits and is not named is dropped.
    void want(std::vector<TileId> tiles);
    /// Null when it is not there yet.
    const QImage* tile(TileId id) const;
    /// All that was wanted is there.
    bool complete() const { return waiting_.empty() && running_ == 0; }
    std::size_t tilesMade() const { return made_; } ///< since construction

signals:
    void arrived(); ///< one or more tiles

private:
    struct Kept {
        TileScene scene;
        std::map<TileId, QImage> tiles;
    };
    void startNext();
    void take(std::uint64_t generation, TileId id, QImage image);
    void forgetOld();

    TileScene scene_;
    std::list<Kept> kept_; ///< newest first; the front is of `scene_`
    std::vector<TileId> waiting_;
    std::vector<TileId> making_;
    int running_ = 0;
    std::uint64_t generation_ = 0; ///< of the scene; results of an older one are dropped
    std::size_t made_ = 0;
    base::StopSource stop_;
    QThreadPool pool_;
};

} // namespace vitrine::ui
