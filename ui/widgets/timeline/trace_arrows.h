// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Arrows from ops to the kernels that they launched, over the lanes of a stack. Takes no part in input.

#include <QPointer>

#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/trace_lane.h"

namespace vitrine::ui {

class TraceArrows final : public QWidget {
    Q_OBJECT

public:
    /// Covers `stack`; both lanes are its lanes.
    TraceArrows(TraceLane* scopes, TraceLane* kernels, LaneStack* stack);

    void setTrace(KernelTracePtr trace);
    /// The op in question gets accent arrows; all others in view get thin ones while there are few of them.
    void setLit(std::uint64_t scope);
    void setShown(bool shown);

    struct Arrow {
        QPointF from, to;
        bool lit = false;
    };
    /// What is drawn at this moment, in the stack's coordinates.
    std::vector<Arrow> arrows() const;

protected:
    void paintEvent(QPaintEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void addArrows(std::uint64_t scope, bool lit, std::vector<Arrow>& arrows) const;
    QPointer<TraceLane> scopes_, kernels_;
    LaneStack* stack_;
    KernelTracePtr trace_;
    std::uint64_t lit_ = 0;
    bool shown_ = true;
};

} // namespace vitrine::ui
