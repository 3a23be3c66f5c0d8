// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/gui/render.h"

#include <QCoreApplication>
#include <QDeadlineTimer>
#include <QDir>
#include <QEventLoop>
#include <QFileInfo>
#include <QPixmap>
#include <QProcess>
#include <QThread>
#include <algorithm>
#include <cstdio>

#include "app/gui/host_run_controller.h"
#include "app/gui/machine_device_feed.h"
#include "app/gui/run_choice.h"
#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/session/session_document.h"
#include "ui/views/kernels/kernels_view.h"
#include "ui/views/mask_lab/mask_lab_view.h"
#include "ui/views/shell/main_window.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::app {

namespace {

constexpr int kLoadLimitMs = 120'000;
constexpr int kLiveLimitMs = 3'000; ///< views of a run that still goes on never settle
constexpr int kDevicesLimitMs = 5'000;

void say(const QString& text) {
    std::printf("%s\n", qPrintable(text));
    std::fflush(stdout);
}

int fail(const QString& sentence) {
    std::fprintf(stderr, "vitrine-gui: error: %s\n", qPrintable(sentence));
    return 2;
}

/// Runs the event loop until `done` or the limit.
template <typename F> bool waitFor(F done, int limitMs) {
    const QDeadlineTimer limit(limitMs);
    while (!done()) {
        if (limit.hasExpired()) {
            return false;
        }
        QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
        QThread::msleep(2);
    }
    return true;
}

QString ratioSuffix(double ratio) {
    return ratio == 1.0 ? QString() : QStringLiteral("@%1x").arg(ratio);
}

} // namespace

namespace {

void waitForView(ui::MainWindow& window) {
    const auto& runs = window.document()->runs();
    const bool live = std::any_of(runs.begin(), runs.end(), [](const sessions::RunInfo& run) {
        return run.status == sessions::RunStatus::Running;
    });
    waitFor([&] { return window.currentView()->settled(); }, live ? kLiveLimitMs : kLoadLimitMs);
}

/// Saves the window as it is now; false when the file cannot be written.
bool savePicture(ui::MainWindow& window, const QString& folder, const QString& stem) {
    // Layout, and a picture for nothing: what is painted first asks for what it needs.
    waitFor([] { return false; }, 30);
    window.grab();
    waitForView(window);
    waitFor([] { return false; }, 30);
    const bool dark = ui::Theme::instance().mode() == ui::Theme::Mode::Dark;
    const QString path = QDir(folder).filePath(stem + (dark ? QStringLiteral("-dark") : QStringLiteral("-light")) +
                                               ratioSuffix(window.devicePixelRatioF()) + QStringLiteral(".png"));
    if (!window.grab().save(path)) {
        fail(QObject::tr("%1: the image was not written, check the folder").arg(path));
        return false;
    }
    say(path);
    return true;
}

/// Looks at two layers of the run's last traced step and at one op there: a whole run at once is too small to read, and
/// somebody who looks at kernels zooms in first.
void lookAtKernels(ui::MainWindow& window) {
    const auto* view = qobject_cast<const ui::KernelsView*>(window.currentView());
    const ui::TraceTrack* kernels =
        view != nullptr && view->trace() ? view->trace()->track(ui::TraceTrack::Kind::Kernels) : nullptr;
    const auto timeline = window.document()->timeline(window.document()->runA()).timeline;
    if (kernels == nullptr || kernels->rows.empty() || !timeline) {
        return;
    }
    const ui::TraceSpan& last = kernels->rows.front().spans.back();
    const auto* step = profiler::enclosingScope(*timeline, last.scope, base::ScopeKind::Step);
    if (step == nullptr) {
        return;
    }
    const auto layers = profiler::childScopes(*timeline, step->id, base::ScopeKind::Layer, step->begin,
                                              profiler::scopeEnd(*timeline, *step));
    const std::size_t middle = layers.size() / 2;
    const auto placeOf = [view](std::uint64_t scope) { return view->trace()->placeOfScope(scope); };
    const auto from = middle > 0 ? placeOf(layers[middle - 1].id) : std::nullopt;
    const auto to = middle > 0 ? placeOf(layers[middle].id) : std::nullopt;
    if (!from || !to) {
        return;
    }
    const base::TimeNs begin = view->scopeLane()->span(*from).begin, end = view->scopeLane()->span(*to).end;
    window.timeCursor()->jumpTo({begin - (end - begin) / 40, end + (end - begin) / 40});
    const auto ops =
        profiler::childScopes(*timeline, layers[middle].id, base::ScopeKind::Op, step->begin, timeline->end());
    if (!ops.empty()) {
        window.timeCursor()->select({0, ops.back().id});
    }
}

/// Points at a blocked element near the middle of the mask, where there is one: the lens shows why.
void lookAtMask(ui::MainWindow& window) {
    const auto* view = qobject_cast<const ui::MaskLabView*>(window.currentView());
    if (view == nullptr || !view->lab()->side(0).map) {
        return;
    }
    const ui::MaskMap& map = *view->lab()->side(0).map;
    const std::int64_t row = map.shape().queryBlocks() / 2, block = map.shape().queryBlock;
    for (const kernels::BlockRun& run : map.blocks->row(map.batch, map.head, row)) {
        if (!run.full) {
            view->map()->goTo({std::min(map.queries() - 1, row * block + block * 3 / 4),
                               std::min(map.keys() - 1, run.first * block + block / 4)},
                              true);
        }
    }
}

/// The other pages of views that have several: pages and layers of the KV cache, both loads in one plot.
bool saveOtherPages(ui::MainWindow& window, const ui::View& view, const QString& folder, const QString& prefix) {
    struct Page {
        const char* view;
        int segment;
        const char* stem;
    };
    static constexpr Page kPages[] = {{"kernels", 1, "kernels-table"},
                                      {"kernels", 2, "kernels-flame"},
                                      {"kernels", 3, "kernels-variants"},
                                      {"kv-cache", 1, "kv-cache-pages"},
                                      {"kv-cache", 2, "kv-cache-layers"},
                                      {"load", 1, "load-overlay"},
                                      {"batching", 1, "batching-requests"},
                                      {"batching", 2, "batching-sweep"},
                                      {"mask", 2, "mask-difference"},
                                      {"fine-tune", 0, "fine-tune-form"},
                                      {"fine-tune", 1, "fine-tune-data"},
                                      {"fine-tune", 3, "fine-tune-step"},
                                      {"rl", 1, "rl-samples"}};
    bool saved = true;
    for (const Page& page : kPages) {
        auto* segments = view.header()->findChild<ui::SegmentedControl*>();
        if (saved && view.id() == QLatin1String(page.view) && segments != nullptr && !view.emptyShown()) {
            if (view.id() == QLatin1String("kernels")) {
                window.timeCursor()->fitAll();
            }
            const int before = segments->current();
            segments->setCurrent(page.segment);
            waitForView(window);
            saved = savePicture(window, folder, prefix + QLatin1String(page.stem));
            segments->setCurrent(before);
        }
    }
    return saved;
}

bool saveViews(ui::MainWindow& window, const QString& folder, const QString& prefix, const QStringList& views) {
    for (ui::View* view : window.views()) {
        if (!views.isEmpty() && !views.contains(view->id())) {
            continue;
        }
        chooseRuns(*window.document(), view->id());
        window.openView(view->id());
        waitForView(window);
        lookAtKernels(window);
        lookAtMask(window);
        if (!savePicture(window, folder, prefix + view->id())) {
            return false;
        }
        if (!saveOtherPages(window, *view, folder, prefix)) {
            return false;
        }
        const QAction* why = window.actionList()->action(QStringLiteral("go.oom"));
        if (view->id() == QLatin1String("memory") && why->isEnabled()) {
            view->perform(QStringLiteral("go.oom"));
            waitForView(window);
            const bool saved = savePicture(window, folder, prefix + QStringLiteral("why-oom"));
            view->perform(QStringLiteral("select.clear"));
            if (!saved) {
                return false;
            }
        }
    }
    return true;
}

} // namespace

int renderSession(const QStringList& files, const QString& folder, const QSize& size, const QStringList& views) {
    if (!QDir().mkpath(folder)) {
        return fail(QObject::tr("%1: the folder cannot be made, name another one").arg(folder));
    }
    HostRunController runs; // prices what would have fitted
    MachineDeviceFeed devices;
    ui::MainWindow window(&runs, {}, nullptr, &devices);
    QStringList known;
    for (const ui::View* view : window.views()) {
        known << view->id();
    }
    for (const QString& id : views) {
        if (!known.contains(id)) {
            return fail(QObject::tr("--views: %1 is no view, name some of %2").arg(id, known.join(QLatin1Char(','))));
        }
    }
    window.resize(size);
    window.show();
    waitFor([&] { return devices.chosen() >= 0 && devices.reading(devices.chosen()).has_value(); }, kDevicesLimitMs);
    QString error;
    bool open = false;
    QObject::connect(window.document(), &ui::SessionDocument::opened, [&] { open = true; });
    QObject::connect(window.document(), &ui::SessionDocument::openFailed,
                     [&](const QString&, const QString& sentence) { error = sentence; });
    const QStringList sessions = files.isEmpty() ? QStringList{QString()} : files;
    for (const QString& file : sessions) {
        open = file.isEmpty();
        error.clear();
        if (file.endsWith(QLatin1String(".jsonl"))) { // rows to train on stand in a page, not in the document
            window.openFile(file);
            waitForView(window);
        } else if (!file.isEmpty()) {
            window.document()->open(file);
            waitFor([&] { return open || !error.isEmpty(); }, kLoadLimitMs);
        }
        if (!error.isEmpty()) {
            return fail(error);
        }
        const QString prefix = sessions.size() > 1 ? QFileInfo(file).completeBaseName() + QLatin1Char('-') : QString();
        for (const auto mode : {ui::Theme::Mode::Dark, ui::Theme::Mode::Light}) {
            ui::Theme::instance().setMode(mode);
            if (!saveViews(window, folder, prefix, views)) {
                return 1;
            }
        }
    }
    return 0;
}

QSize windowSize(const QString& text) {
    const QStringList parts = text.split(QLatin1Char('x'));
    constexpr int kLargest = 8192;
    const QSize size = parts.size() == 2 ? QSize(parts[0].toInt(), parts[1].toInt()) : QSize();
    return size.width() >= 900 && size.height() >= 600 && std::max(size.width(), size.height()) <= kLargest ? size
                                                                                                            : QSize();
}

int renderAllRatios(const QStringList& files, const QString& folder, const QString& size, const QStringList& views) {
    for (const char* ratio : {"1", "2"}) {
        QProcess child;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert(QStringLiteral("QT_SCALE_FACTOR"), QString::fromLatin1(ratio));
        environment.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("offscreen"));
        child.setProcessEnvironment(environment);
        child.setProcessChannelMode(QProcess::ForwardedChannels);
        child.start(QCoreApplication::applicationFilePath(),
                    files + QStringList{QStringLiteral("--render"), folder, QStringLiteral("--size"), size,
                                        QStringLiteral("--views"), views.join(QLatin1Char(','))});
        if (!child.waitForFinished(-1) || child.exitStatus() != QProcess::NormalExit) {
            return fail(QObject::tr("rendering stopped early, see the messages above"));
        }
        if (child.exitCode() != 0) {
            return child.exitCode();
        }
    }
    return 0;
}

} // namespace vitrine::app
