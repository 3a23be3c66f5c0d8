// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/mask_lab/mask_lab.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "base/error.h"

namespace vitrine::ui {

namespace {

constexpr int kEditDelayMs = 150;
constexpr int kSlideDelayMs = 25;

} // namespace

MaskLab::MaskLab(QObject* parent) : QObject(parent) {
    for (auto& work : work_) {
        work = std::make_unique<Work>(this);
    }
    timer_.setSingleShot(true);
    connect(&timer_, &QTimer::timeout, this, &MaskLab::flush);
}

MaskLab::~MaskLab() {
    for (const auto& work : work_) {
        work->stopBuild.request_stop();
        work->stopCount.request_stop();
    }
}

void MaskLab::setSource(int index, const MaskSource& source) {
    Side& side = sides_[static_cast<std::size_t>(index)];
    if (side.study && side.source == source) {
        return;
    }
    side.source = source;
    side.times.reset();
    side.run = 0;
    emit sourceChanged(index);
    emit timesChanged(index);
    changed(index, 0);
}

void MaskLab::setText(int index, const std::string& text) {
    Side& side = sides_[static_cast<std::size_t>(index)];
    if (side.source.text != text) {
        side.source.text = text;
        side.source.name.clear();
        changed(index, kEditDelayMs);
    }
}

void MaskLab::setExpressions(int index, const std::string& mask, const std::string& score) {
    Side& side = sides_[static_cast<std::size_t>(index)];
    if (side.source.mask != mask || side.source.score != score) {
        side.source.mask = mask;
        side.source.score = score;
        side.source.name.clear();
        changed(index, 0);
    }
}

void MaskLab::setParameter(int index, const std::string& name, double value) {
    Side& side = sides_[static_cast<std::size_t>(index)];
    const auto found = side.source.parameters.find(name);
    if (found == side.source.parameters.end() || found->second != value) {
        side.source.parameters[name] = value;
        changed(index, kSlideDelayMs);
    }
}

void MaskLab::setCapture(int index, const std::string& name, const std::string& line) {
    sides_[static_cast<std::size_t>(index)].source.setCapture(name, line);
    changed(index, 0);
}

void MaskLab::setTensorsFile(int index, const std::string& path) {
    sides_[static_cast<std::size_t>(index)].source.tensorsFile = path;
    changed(index, 0);
}

bool MaskLab::Side::timesStale(const MaskSizes& now) const {
    MaskSource measured = timedSource;
    measured.name = source.name;
    return times && !(measured == source && timedSizes == now);
}

void MaskLab::setTimes(int index, std::optional<MaskTimes> times, sessions::RunId run, const MaskSource& source,
                       const MaskSizes& sizes) {
    Side& side = sides_[static_cast<std::size_t>(index)];
    side.times = std::move(times);
    side.run = run;
    side.timedSource = source;
    side.timedSizes = sizes;
    emit timesChanged(index);
}

void MaskLab::swapSides() {
    std::swap(sides_[0], sides_[1]);
    std::swap(work_[0], work_[1]);
    // What was under way would come to the other side: it starts again there.
    for (int i = 0; i < kSides; ++i) {
        emit sourceChanged(i);
        emit studyChanged(i);
        emit timesChanged(i);
        emit mapChanged(i);
        if (side(i).working || work_[static_cast<std::size_t>(i)]->dirty) {
            changed(i, 0);
        }
    }
}

void MaskLab::setSizes(const MaskSizes& sizes) {
    MaskSizes valid = sizes;
    for (std::int64_t* value : {&valid.queries, &valid.keys}) {
        *value = std::clamp<std::int64_t>(*value, 1, kLongestMask);
    }
    valid.batch = std::clamp<std::int64_t>(valid.batch, 1, 1024);
    valid.heads = std::clamp<std::int64_t>(valid.heads, 1, 1024);
    valid.kvHeads = std::clamp<std::int64_t>(valid.kvHeads, 1, valid.heads);
    while (valid.heads % valid.kvHeads != 0) {
        --valid.kvHeads;
    }
    valid.headDim = std::clamp<std::int64_t>(valid.headDim, 1, 1024);
    valid.block = std::clamp<std::int64_t>(valid.block, 1, kLongestMask);
    if (valid == sizes_) {
        return;
    }
    sizes_ = valid;
    batch_ = std::min(batch_, sizes_.batch - 1);
    head_ = std::min(head_, sizes_.heads - 1);
    emit sizesChanged();
    rebuildAll(0);
}

void MaskLab::setPlane(std::int64_t batch, std::int64_t head) {
    batch = std::clamp<std::int64_t>(batch, 0, sizes_.batch - 1);
    head = std::clamp<std::int64_t>(head, 0, sizes_.heads - 1);
    if (batch == batch_ && head == head_) {
        return;
    }
    batch_ = batch;
    head_ = head;
    for (int i = 0; i < kSides; ++i) {
        Side& side = sides_[static_cast<std::size_t>(i)];
        if (side.map) {
            side.map = atPlane(side.map);
            emit mapChanged(i);
        }
    }
}

void MaskLab::setScores(Scores scores) {
    if (scores != scores_) {
        scores_ = scores;
        rebuildAll(0);
    }
}

void MaskLab::setPlannedDevice(const std::string& profile) {
    if (profile == plannedDevice_) {
        return;
    }
    plannedDevice_ = profile;
    for (int i = 0; i < kSides; ++i) {
        if (side(i).map) {
            plan(i);
        }
    }
}

bool MaskLab::settled() const {
    return !timer_.isActive() && std::all_of(work_.begin(), work_.end(), [](const auto& work) {
        return !work->dirty && !work->build.busy() && !work->density.busy() && !work->blockSizes.busy() &&
               !work->plan.busy();
    });
}

void MaskLab::changed(int side, int delayMs) {
    Work& work = *work_[static_cast<std::size_t>(side)];
    work.dirty = true;
    work.stopBuild.request_stop();
    work.stopCount.request_stop();
    // A slider that moves on and on does not put off what it shows.
    if (delayMs == kSlideDelayMs && timer_.isActive()) {
        return;
    }
    timer_.start(delayMs);
}

void MaskLab::rebuildAll(int delayMs) {
    for (int i = 0; i < kSides; ++i) {
        if (!side(i).source.text.empty() || side(i).study) {
            changed(i, delayMs);
        }
    }
}

void MaskLab::flush() {
    timer_.stop();
    for (int i = 0; i < kSides; ++i) {
        if (work_[static_cast<std::size_t>(i)]->dirty) {
            start(i);
        }
    }
}

void MaskLab::stop() {
    for (const auto& work : work_) {
        work->stopBuild.request_stop();
        work->stopCount.request_stop();
    }
}

MaskMapPtr MaskLab::atPlane(const MaskMapPtr& map) const {
    const std::int64_t batch = map->usesBatch ? batch_ : 0;
    const std::int64_t head = map->usesHead ? head_ : 0;
    return map->batch == batch && map->head == head ? map : maskMapAt(*map, batch, head);
}

MaskLab::Built MaskLab::build(const MaskSource& source, const MaskSizes& sizes, Scores scores,
                              const base::StopToken& stop) {
    Built built;
    built.study = studyMask(source, sizes);
    if (built.study->problem) {
        return built;
    }
    try {
        base::ThreadPool pool;
        MaskMapQuery request;
        request.name = built.study->title();
        request.mask = built.study->mask;
        request.shape = {sizes.batch, sizes.heads, sizes.queries, sizes.keys, sizes.block, sizes.block};
        request.scores.program = built.study->score;
        request.scores.base = scores == Scores::One ? MaskScores::Base::One : MaskScores::Base::Zero;
        if (scores == Scores::File) {
            if (auto real = fileScores(*built.study)) {
                request.scores = *std::move(real);
            }
        }
        built.map = makeMaskMap(request, pool, nullptr, stop);
    } catch (const base::Cancelled&) {
        built.stopped = true;
    } catch (const std::exception& error) {
        built.error = QString::fromUtf8(error.what());
    }
    return built;
}

void MaskLab::start(int index) {
    Work& work = *work_[static_cast<std::size_t>(index)];
    work.dirty = false;
    work.stopBuild = base::StopSource();
    sides_[static_cast<std::size_t>(index)].working = true;
    emit workingChanged();
    work.build.start([source = side(index).source, sizes = sizes_, scores = scores_,
                      stop = work.stopBuild.get_token()] { return build(source, sizes, scores, stop); },
                     [this, key = &work](const Built& built) { takeBuilt(sideOf(key), built); });
}

void MaskLab::takeBuilt(int index, const Built& built) {
    Side& side = sides_[static_cast<std::size_t>(index)];
    Work& work = *work_[static_cast<std::size_t>(index)];
    side.working = work.dirty || work.build.busy();
    emit workingChanged();
    if (built.stopped) {
        return;
    }
    side.study = built.study;
    side.error = built.error;
    if (built.map) {
        side.mapStudy = built.study;
        side.map = atPlane(built.map);
        side.density.reset();
        side.blockSizes.clear();
        side.plan.reset();
    }
    emit studyChanged(index);
    if (built.map) {
        emit mapChanged(index);
        emit numbersChanged(index);
        count(index);
        plan(index);
    }
}

void MaskLab::plan(int index) {
    Work& work = *work_[static_cast<std::size_t>(index)];
    const MaskMapPtr map = side(index).map;
    work.plan.start([map, sizes = sizes_, device = plannedDevice_] { return maskPlan(*map, sizes, device); },
                    [this, key = &work, map](std::optional<MaskPlan> made) {
                        const int to = sideOf(key);
                        Side& side = sides_[static_cast<std::size_t>(to)];
                        if (side.map && side.map->blocks == map->blocks) {
                            side.plan = std::move(made);
                            emit timesChanged(to);
                        }
                        emit workingChanged();
                    });
}

void MaskLab::count(int index) {
    Work& work = *work_[static_cast<std::size_t>(index)];
    work.stopCount.request_stop();
    work.stopCount = base::StopSource();
    const base::StopToken stop = work.stopCount.get_token();
    const MaskMapPtr map = side(index).map;
    // Results of a mask that is gone by then are not shown.
    const auto deliver = [this, key = &work, map](const auto& take) {
        const int to = sideOf(key);
        Side& side = sides_[static_cast<std::size_t>(to)];
        if (side.map && side.map->blocks == map->blocks) {
            take(side);
            emit numbersChanged(to);
        }
        emit workingChanged();
    };
    work.blockSizes.start(
        [map, stop] {
            base::ThreadPool pool;
            return maskBlockSizes(*map, pool, stop);
        },
        [deliver](std::vector<MaskBlockSize> sizes) {
            deliver([&sizes](Side& side) { side.blockSizes = std::move(sizes); });
        });
    work.density.start(
        [map, stop] {
            base::ThreadPool pool;
            const auto begin = std::chrono::steady_clock::now();
            const double density = maskDensity(*map, pool, stop);
            return std::pair(density, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        },
        [deliver](std::pair<double, double> counted) {
            deliver([&counted](Side& side) { std::tie(side.density, side.densitySeconds) = counted; });
        });
}

} // namespace vitrine::ui
