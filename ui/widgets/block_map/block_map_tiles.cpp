// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/block_map/block_map_tiles.h"

#include <QThread>
#include <algorithm>

namespace vitrine::ui {

namespace {

constexpr std::size_t kMostScenes = 6;
constexpr std::size_t kMostTiles = 320; ///< 80 MiB

} // namespace

BlockMapTiles::BlockMapTiles(QObject* parent) : QObject(parent) {
    pool_.setMaxThreadCount(std::clamp(QThread::idealThreadCount(), 1, 4));
}

BlockMapTiles::~BlockMapTiles() {
    stop_.request_stop();
    pool_.clear();
    pool_.waitForDone(); // jobs look at the stop token in every row
}

void BlockMapTiles::setScene(const TileScene& scene) {
    if (!kept_.empty() && scene == scene_) {
        return;
    }
    stop_.request_stop();
    stop_ = base::StopSource();
    ++generation_;
    waiting_.clear();
    making_.clear();
    running_ = 0;
    scene_ = scene;
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.scene == scene; });
    if (found != kept_.end()) {
        kept_.splice(kept_.begin(), kept_, found);
    } else {
        kept_.push_front({scene, {}});
    }
    forgetOld();
}

void BlockMapTiles::forgetOld() {
    std::size_t tiles = 0;
    std::size_t scenes = 0;
    for (auto kept = kept_.begin(); kept != kept_.end();) {
        tiles += kept->tiles.size();
        ++scenes;
        const bool tooMany = scenes > kMostScenes || tiles > kMostTiles;
        kept = tooMany && kept != kept_.begin() ? kept_.erase(kept) : std::next(kept);
    }
}

const QImage* BlockMapTiles::tile(TileId id) const {
    if (kept_.empty()) {
        return nullptr;
    }
    const auto& tiles = kept_.front().tiles;
    const auto found = tiles.find(id);
    return found == tiles.end() ? nullptr : &found->second;
}

void BlockMapTiles::want(std::vector<TileId> tiles) {
    waiting_.clear();
    if (scene_.map == nullptr || kept_.empty()) {
        return;
    }
    auto& there = kept_.front().tiles;
    if (there.size() + tiles.size() > kMostTiles) {
        std::erase_if(there, [&](const auto& entry) {
            return std::find(tiles.begin(), tiles.end(), entry.first) == tiles.end();
        });
    }
    for (const TileId& id : tiles) {
        if (!there.contains(id) && std::find(making_.begin(), making_.end(), id) == making_.end()) {
            waiting_.push_back(id);
        }
    }
    std::reverse(waiting_.begin(), waiting_.end()); // the most wanted is taken from the back
    startNext();
}

void BlockMapTiles::startNext() {
    while (!waiting_.empty() && running_ < pool_.maxThreadCount()) {
        const TileId id = waiting_.back();
        waiting_.pop_back();
        making_.push_back(id);
        ++running_;
        pool_.start([this, id, scene = scene_, generation = generation_, stop = stop_.get_token()] {
            QImage image;
            try {
                image = mapTile(scene, id.x, id.y, stop);
            } catch (const std::exception&) {
                image = QImage(); // stopped, or a program that cannot be evaluated: the place stays canvas
            }
            // This object outlives its jobs; events to it go with it.
            QMetaObject::invokeMethod(
                this, [this, generation, id, image] { take(generation, id, image); }, Qt::QueuedConnection);
        });
    }
}

void BlockMapTiles::take(std::uint64_t generation, TileId id, QImage image) {
    if (generation != generation_) {
        return;
    }
    --running_;
    ++made_;
    std::erase(making_, id);
    kept_.front().tiles[id] = std::move(image);
    startNext();
    emit arrived();
}

} // namespace vitrine::ui
