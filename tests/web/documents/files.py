"""Small files of every kind, made here."""

import io

from docx import Document
from openpyxl import Workbook
from pptx import Presentation
from pypdf import PdfWriter

__all__ = ["docx", "encrypted_pdf", "pdf", "pptx", "scan", "xlsx"]


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text a page, written by hand: our libraries read, none of them writes text."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    kids = []
    for page in pages:
        stream = f"BT /F1 12 Tf 72 720 Td ({page}) Tj ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>"
        )
    objects[1] = f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(kids)}] >>"
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n" + "".join(
        f"{place:010} 00000 n \n" for place in places
    )
    trailer = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    return data + (table + trailer).encode()


def scan(pages: int = 2) -> bytes:
    """A PDF without any text."""
    writer = PdfWriter()
    for _ in range(pages):
        writer.add_blank_page(200, 200)
    return _saved(writer.write)


def encrypted_pdf() -> bytes:
    """A PDF with a password."""
    writer = PdfWriter()
    writer.add_blank_page(200, 200)
    writer.encrypt("a password", algorithm="RC4-128")
    return _saved(writer.write)


def docx(*paragraphs: str) -> bytes:
    """A Word file with a heading, paragraphs and a table."""
    document = Document()
    document.add_heading("The harbour", 1)
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    table = document.add_table(1, 2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "boats", "7"
    return _saved(document.save)


def xlsx(**sheets: list[list[object]]) -> bytes:
    """An Excel file."""
    book = Workbook()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    return _saved(book.save)


def pptx(*slides: str) -> bytes:
    """A PowerPoint file."""
    presentation = Presentation()
    for text in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text = text
    return _saved(presentation.save)


def _saved(save: object) -> bytes:
    file = io.BytesIO()
    save(file)  # type: ignore[operator]
    return file.getvalue()
