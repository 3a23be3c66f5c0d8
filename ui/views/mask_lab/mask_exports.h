// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What leaves the Mask Lab: the arrays of a mask as PyTorch has them, and the map as a picture in a file or on the
// clipboard.

#include <QObject>
#include <QString>

#include "ui/models/common/latest_job.h"
#include "ui/models/mask_lab/mask_map.h"

class QWidget;

namespace vitrine::ui {

class BlockMap;

class MaskExports final : public QObject {
    Q_OBJECT

public:
    /// Pictures are of `map`, which outlives this. Dialogs open over `parent`.
    MaskExports(BlockMap* map, QWidget* parent);

    void chooseArrays(const MaskMapPtr& mask); ///< asks where to write them
    /// Writes the arrays on a worker. Without a mask nothing happens.
    void writeArrays(const MaskMapPtr& mask, const QString& path);
    void choosePicture(bool vector); ///< asks where to write it: SVG or PNG
    void copyPicture();

    /// Where the last of them went; empty before the first one and where it failed.
    const QString& said() const { return said_; }
    bool busy() const { return job_.busy(); }

signals:
    void saidChanged();
    void failed(const QString& error); ///< a sentence for people; empty: what failed before is settled

private:
    void say(const QString& text);

    BlockMap* map_;
    QWidget* window_;
    QString said_;
    LatestJob<QString> job_;
};

} // namespace vitrine::ui
