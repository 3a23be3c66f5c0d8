// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/time_commands.h"

#include <QCoreApplication>
#include <map>

#include "ui/models/common/format.h"
#include "ui/views/shell/drawer.h"
#include "ui/views/shell/window_docks.h"

namespace vitrine::ui {

TimeCommands::TimeCommands(const ViewServices& context, WindowDocks* docks) : time_(context.time), docks_(docks) {}

bool TimeCommands::perform(const QString& action) {
    const std::map<QString, std::function<void()>> commands = {
        {"zoom.fit", [this] { time_->fitSelection(); }},
        {"zoom.all", [this] { time_->fitAll(); }},
        {"zoom.back", [this] { time_->back(); }},
        {"zoom.follow", [this] { time_->fitAll(); }},
        {"zoom.in", [this] { time_->zoom(0.7, zoomCentre()); }},
        {"zoom.out", [this] { time_->zoom(1 / 0.7, zoomCentre()); }},
        {"pan.left", [this] { time_->pan(-0.15); }},
        {"pan.right", [this] { time_->pan(0.15); }},
        {"select.clear",
         [this] {
             time_->setMeasured({});
             time_->select({});
         }},
        {"measure.filter", [this] { filterMeasured(); }},
        {"measure.clear-filter",
         [this] {
             if (!time_->filters().empty()) {
                 time_->removeFilter(time_->filters().size() - 1);
             }
         }},
        {"mark.set", [this] { setMark(); }},
        {"mark.keep", [this] { keepMark(); }},
        {"mark.remove", [this] { removeMark(); }},
    };
    const auto found = commands.find(action);
    if (found != commands.end()) {
        found->second();
    }
    return found != commands.end();
}

std::optional<TimeRange> TimeCommands::marked() const {
    if (time_->mark() || time_->measured()) {
        return time_->mark() ? time_->mark() : time_->measured();
    }
    return time_->cursor() ? std::optional(TimeRange{*time_->cursor(), *time_->cursor()}) : std::nullopt;
}

base::TimeNs TimeCommands::zoomCentre() const {
    return time_->cursor().value_or(time_->range().begin + time_->range().length() / 2);
}

void TimeCommands::filterMeasured() {
    if (const auto range = time_->measured(); range && range->length() > 0) {
        const QString name = QCoreApplication::translate("TimeCommands", "%1 from %2");
        time_->pushFilter({*range, name.arg(durationText(range->length()), instantText(range->begin))});
    }
}

/// A second time on the same range takes the mark away.
void TimeCommands::setMark() {
    const auto cursor = time_->cursor();
    auto range = time_->measured();
    if (!range && cursor) {
        range = TimeRange{*cursor, *cursor};
    }
    time_->setMark(range == time_->mark() ? std::nullopt : range);
}

void TimeCommands::keepMark() {
    if (const auto range = marked()) {
        time_->setMark({});
        docks_->openDrawer()->addNote(*range);
    }
}

void TimeCommands::removeMark() {
    if (time_->mark()) {
        time_->setMark({});
    } else if (time_->cursor()) {
        docks_->drawer()->removeNoteAt(*time_->cursor(), time_->range().length() / 100);
    }
}

} // namespace vitrine::ui
