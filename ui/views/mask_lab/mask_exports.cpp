// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/mask_lab/mask_exports.h"

#include <QClipboard>
#include <QFileDialog>
#include <QGuiApplication>
#include <QMimeData>

#include "engine/attention/block_mask_file.h"
#include "ui/widgets/block_map/block_map.h"

namespace vitrine::ui {

MaskExports::MaskExports(BlockMap* map, QWidget* parent) : QObject(parent), map_(map), window_(parent), job_(this) {}

void MaskExports::say(const QString& text) {
    said_ = text;
    emit saidChanged();
}

void MaskExports::chooseArrays(const MaskMapPtr& mask) {
    const QString path =
        QFileDialog::getSaveFileName(window_, tr("Export arrays"), QStringLiteral("block_mask.safetensors"),
                                     tr("safetensors files (*.safetensors)"));
    if (!path.isEmpty()) {
        writeArrays(mask, path);
    }
}

void MaskExports::writeArrays(const MaskMapPtr& mask, const QString& path) {
    if (!mask) {
        return;
    }
    job_.start(
        [mask, path]() -> QString {
            try {
                engine::writeBlockMaskArrays(*mask->blocks, path.toStdString());
            } catch (const std::exception& error) {
                return QString::fromUtf8(error.what());
            }
            return {};
        },
        [this, path](const QString& error) {
            emit failed(error);
            say(error.isEmpty() ? tr("Arrays written to %1").arg(path) : QString());
        });
}

void MaskExports::choosePicture(bool vector) {
    const QString name = vector ? QStringLiteral("mask.svg") : QStringLiteral("mask.png");
    const QString path = QFileDialog::getSaveFileName(window_, tr("Save the picture"), name,
                                                      vector ? tr("SVG images (*.svg)") : tr("PNG images (*.png)"));
    if (path.isEmpty()) {
        return;
    }
    try {
        vector ? map_->saveSvg(path) : map_->savePng(path, 2);
        say(tr("Picture written to %1").arg(path));
    } catch (const std::exception& error) {
        emit failed(QString::fromUtf8(error.what()));
    }
}

void MaskExports::copyPicture() {
    auto* copied = new QMimeData;
    copied->setImageData(map_->picture(2));
    copied->setData(QStringLiteral("image/svg+xml"), map_->svg());
    QGuiApplication::clipboard()->setMimeData(copied);
    say(tr("The picture is copied, as PNG and as SVG"));
}

} // namespace vitrine::ui
