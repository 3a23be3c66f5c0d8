// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The RL view over invented runs.

#include <map>
#include <optional>
#include <vector>

#include "tests/ui/models/rl/rl_script.h"
#include "ui/views/rl/rl_view.h"

namespace vitrine::test {

/// A view of its own with what it needs.
struct ShownRl {
    ShownRl() : view({&document, &time, nullptr, nullptr}) {
        view.resize(1000, 800);
        view.show();
    }
    void show(const RlScript& a, std::optional<RlScript> b = {},
              sessions::RunStatus status = sessions::RunStatus::Done) {
        std::vector<sessions::RunInfo> runs{a.info(1)};
        runs[0].status = status;
        std::map<sessions::RunId, ui::TimelinePtr> timelines{{1, a.timeline()}};
        if (b) {
            runs.push_back(b->info(2));
            timelines[2] = b->timeline();
        }
        time.reset({0, timelines[1]->end()});
        document.show(QStringLiteral("x.vitrine"), runs, timelines);
        document.setRunA(1);
        document.setRunB(b ? 2 : 0);
    }

    ui::SessionDocument document;
    ui::TimeCursor time;
    ui::RlView view;
};

} // namespace vitrine::test
