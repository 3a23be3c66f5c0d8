// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/memory/timeline_menu.h"

#include <QMenu>

#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

void openTimelineMenu(QWidget* parent, const ViewServices& context, const TimelinePtr& timeline, const QPoint& position,
                      base::TimeNs at, std::initializer_list<const char*> commands) {
    QMenu menu(parent);
    TimeCursor* time = context.time;
    const auto add = [&menu, parent](const QString& text, const std::function<void()>& body) {
        QObject::connect(menu.addAction(text), &QAction::triggered, parent, body);
    };
    add(QObject::tr("Set the cursor here"), [time, at] { time->setCursor(at); });
    if (const profiler::ScopeRow* step = timeline ? profiler::scopeAt(*timeline, at, base::ScopeKind::Step) : nullptr) {
        const TimeRange range{step->begin, step->end < 0 ? timeline->end() : step->end};
        const QString name = textOf(profiler::scopeTitle(*timeline, *step, false));
        add(QObject::tr("Measure %1").arg(name), [time, range] { time->setMeasured(range); });
        add(QObject::tr("Zoom to %1").arg(name), [time, range] { time->jumpTo(range); });
        add(QObject::tr("Narrow all views to %1").arg(name), [time, range, name] { time->pushFilter({range, name}); });
    }
    menu.addSeparator();
    for (const char* id : {"measure.filter", "zoom.fit", "zoom.all", "zoom.back"}) {
        menu.addAction(context.actions->action(QString::fromLatin1(id)));
    }
    menu.addSeparator();
    for (const char* id : commands) {
        menu.addAction(context.actions->action(QString::fromLatin1(id)));
    }
    menu.exec(position);
}

} // namespace vitrine::ui
