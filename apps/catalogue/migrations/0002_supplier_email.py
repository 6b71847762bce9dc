from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalogue', '0001_products'),
    ]

    operations = [
        migrations.AddField(
            model_name='category',
            name='supplier_email',
            field=models.EmailField(blank=True, max_length=254, verbose_name="supplier's e-mail"),
        ),
    ]
